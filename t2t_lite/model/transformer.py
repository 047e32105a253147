"""The model: an encoder, a decoder, and the embedding they share."""

import functools
from typing import NamedTuple

import keras
from keras import ops

from t2t_lite.hparams import HParams, from_dict
from t2t_lite.model import masks, rows
from t2t_lite.model.embedding import PositionEmbedding, TiedEmbedding
from t2t_lite.model.layers import DecoderLayer, EncoderLayer
from t2t_lite.token_ids import EOS


class DecoderCache(NamedTuple):
    """What decoding one more position needs of the source and its past.

    M counts the positions that there is room for, P = M W what the hypotheses
    have at them, position by position, N the decoder's layers.
    """

    position: object  # int32 [], of the next token
    ancestor_BWM: object  # int32, the slot of hypothesis w's ancestor at m
    layers: tuple  # N of (k_BHPK, v_BHPK)
    memory: tuple  # N of (k_BHSK, v_BHSK)
    may_attend_B11S: object  # bool, which positions of the memory are tokens


class _Stack(keras.layers.Layer):
    """What encoder and decoder share: embedded tokens, then N layers.

    Args:
        num_layers: int, N.
        d_model: int, D.
        d_ff: int, F.
        num_heads: int, h.
        d_k: int, depth of queries and keys.
        d_v: int, depth of values; d_k when not given.
        dropout: float, on sub-layers' outputs and on the stack's input.
        attention_dropout: float, on attention weights.
        attention_window: int, r, odd: to how many positions around each one
            self-attention is restricted; 0 for all.
        learned_positions: int, rows of a learned table of positions, or None
            for sines and cosines.
    """

    layer_class = None

    def __init__(
        self,
        num_layers,
        d_model,
        d_ff,
        num_heads,
        d_k,
        d_v=None,
        dropout=0.1,
        attention_dropout=0.0,
        attention_window=0,
        learned_positions=None,
        **kwargs,
    ):
        super().__init__(**kwargs)
        self.supports_masking = True
        self._settings = {
            "num_layers": num_layers,
            "d_model": d_model,
            "d_ff": d_ff,
            "num_heads": num_heads,
            "d_k": d_k,
            "d_v": d_v,
            "dropout": dropout,
            "attention_dropout": attention_dropout,
            "attention_window": attention_window,
            "learned_positions": learned_positions,
        }
        policy = self.dtype_policy
        self.position_embedding = PositionEmbedding(
            d_model, learned_positions, dtype=policy, name="positions"
        )
        self.input_dropout = keras.layers.Dropout(
            dropout, dtype=policy, name="input_dropout"
        )
        sizes = (d_ff, num_heads, d_k, d_v, dropout, attention_dropout)
        self.layers = [
            self.layer_class(
                *sizes, attention_window, dtype=policy, name=f"layer_{n}"
            )
            for n in range(num_layers)
        ]

    def build(self, x_shape):
        self._build(x_shape)

    def _build(self, x_shape, *memory_shape):
        self.position_embedding.build(x_shape)
        self.input_dropout.build(x_shape)
        for layer in self.layers:
            layer.build(x_shape, *memory_shape)

    def embed(self, x, start=0, training=False):
        """Returns x [B, L, D] with positions added, dropped; section 5.4."""
        x = self.position_embedding(x, start=start)
        return self.input_dropout(x, training=training)

    def compute_output_shape(self, x_shape, *_, **__):
        return x_shape

    def get_config(self):
        return super().get_config() | self._settings


@keras.saving.register_keras_serializable("t2t_lite")
class Encoder(_Stack):
    """Embedded source tokens to the memory that the decoder attends to.

    Args: those of Decoder.

    Source: section 3.1, "Encoder".
    """

    layer_class = EncoderLayer

    def call(self, x, may_attend=None, training=False, mask=None, x_mask=None):
        """Returns memory_BSD.

        Args:
            x: float [B, S, D], embedded tokens without positions.
            may_attend: bool, broadcasts to [B, H, S, S]; None for no limits
                but that of the mask.
            training: bool, whether to drop.
            mask: bool [B, S], the mask of x that Keras hands on where x is
                the only tensor.
            x_mask: bool [B, S], the same where it is not.
        """
        may_attend = masks.within(may_attend, x_mask if mask is None else mask)
        x = self.embed(x, training=training)
        for layer in self.layers:
            x = layer(x, may_attend=may_attend, training=training)
        return x


@keras.saving.register_keras_serializable("t2t_lite")
class Decoder(_Stack):
    """Embedded target tokens to the vectors that the next tokens come from.

    Args:
        num_layers: int, N.
        d_model: int, D.
        d_ff: int, F.
        num_heads: int, h.
        d_k: int, depth of queries and keys.
        d_v: int, depth of values; d_k when not given.
        dropout: float, on sub-layers' outputs and on the stack's input.
        attention_dropout: float, on attention weights.
        attention_window: int, r, odd: to how many positions around each one
            self-attention is restricted; 0 for all.
        learned_positions: int, rows of a learned table of positions, or None
            for sines and cosines.

    Source: section 3.1, "Decoder".
    """

    layer_class = DecoderLayer

    def build(self, x_shape, memory_shape=None):
        self._build(x_shape, memory_shape)

    def call(
        self,
        x,
        memory,
        may_attend_memory=None,
        training=False,
        memory_mask=None,
    ):
        """Returns float [B, T, D]; position t sees x[:, :t + 1] and memory.

        Args:
            x: float [B, T, D], embedded tokens without positions.
            memory: float [B, S, D].
            may_attend_memory: bool, broadcasts to [B, H, T, S]; None for no
                limits but that of the mask.
            training: bool, whether to drop.
            memory_mask: bool [B, S], the mask of the memory that Keras hands
                on.
        """
        may_attend_memory = masks.within(may_attend_memory, memory_mask)
        # A window of the past needs no mask, which would be L x L.
        is_restricted = self.layers and self.layers[0].attention_window
        may_attend = None if is_restricted else masks.causal(ops.shape(x)[1])
        x = self.embed(x, training=training)
        for layer in self.layers:
            x = layer(
                x,
                memory,
                may_attend=may_attend,
                may_attend_memory=may_attend_memory,
                training=training,
            )
        return x

    def fused_qkv(self):
        """Returns what self-attention multiplies by in `step`, N of it."""
        return [layer.self_attention.fused_qkv() for layer in self.layers]

    def empty_cache(self, memory_BSD, may_attend_B11S, beam_width, max_length):
        """Returns a DecoderCache with room for `max_length` positions.

        The memory's keys and values are computed for all layers.
        """
        B, W, M = ops.shape(memory_BSD)[0], beam_width, max_length
        attention = self.layers[0].self_attention
        H, dtype = attention.num_heads, self.compute_dtype

        nothing = tuple(
            ops.zeros((B, H, M * W, depth), dtype)
            for depth in (attention.d_k, attention.d_v)
        )
        return DecoderCache(
            position=ops.convert_to_tensor(0, "int32"),
            ancestor_BWM=ops.zeros((B, W, M), "int32"),
            layers=(nothing,) * len(self.layers),
            memory=tuple(
                layer.memory_attention.keys_and_values(memory_BSD)
                for layer in self.layers
            ),
            may_attend_B11S=may_attend_B11S,
        )

    def step(self, x_BWD, cache, projections, grows=False):
        """Returns the next vectors and cache; equals `call` at one position.

        Args:
            x_BWD: float, the embedded newest token of each of W hypotheses.
            cache: DecoderCache of the positions before.
            projections: what `fused_qkv` returned.
            grows: bool, whether the cache has room for the positions before
                alone, and gets longer.

        Returns:
            (float [B, W, D], DecoderCache).
        """
        write = (
            _appended
            if grows
            else functools.partial(_overwritten, position=cache.position)
        )
        cache = _own_slot_at_this_position(cache, write)
        visible = self._visible(cache)
        is_ancestor = _is_ancestor(cache, visible)
        x_BWD = _at_one_position(x_BWD, cache.position, self.embed)
        layers = []
        for layer, projection, old, memory in zip(
            self.layers, projections, cache.layers, cache.memory, strict=True
        ):
            x_BWD, new = layer.step(
                x_BWD,
                projection,
                (old, write, is_ancestor, visible),
                (*memory, cache.may_attend_B11S),
            )
            layers.append(new)
        return x_BWD, cache._replace(
            position=cache.position + 1, layers=tuple(layers)
        )

    def _visible(self, cache):
        """Returns (first, M) of the positions in the window; None for all."""
        window = self.layers[0].attention_window
        if not window:
            return None
        M = _smaller(window // 2 + 1, ops.shape(cache.ancestor_BWM)[2])
        return ops.maximum(cache.position - M + 1, 0), M


def _at_one_position(x_BWD, position, embed):
    """Returns `embed` of W tokens that all stand at `position`."""
    B, W, D = ops.shape(x_BWD)
    x = embed(ops.reshape(x_BWD, (B * W, 1, D)), start=position)
    return ops.reshape(x, (B, W, D))


def _overwritten(old_BXP, new_BXW, position):
    """Returns [B, X, M W, ...] with the new [B, X, W, ...] at a position.

    X is heads of the keys and values; of ancestors it is hypotheses, and W 1.
    """
    B, X, W, *rest = ops.shape(new_BXW)
    M = ops.shape(old_BXP)[2] // W
    places = ops.arange(B)[:, None], ops.arange(X), position
    index_BX3 = ops.stack([ops.broadcast_to(n, (B, X)) for n in places], -1)
    # Under XLA a slice_update copies the whole of it in each step.
    updated_BXMW = ops.scatter_update(
        ops.reshape(old_BXP, (B, X, M, W, *rest)),
        ops.reshape(index_BX3, (B * X, 3)),
        ops.reshape(new_BXW, (B * X, W, *rest)),
    )
    return ops.reshape(updated_BXMW, (B, X, M * W, *rest))


def _appended(old_BXP, new_BXW):
    """Returns the old tensor [B, X, P, ...] and the new one after it."""
    return ops.concatenate([old_BXP, new_BXW], 2)


def _own_slot_at_this_position(cache, write):
    """Returns the cache in which hypothesis w keeps this position in slot w."""
    B, W, _ = ops.shape(cache.ancestor_BWM)
    own_BW1 = ops.broadcast_to(ops.arange(W, dtype="int32")[:, None], (B, W, 1))
    return cache._replace(ancestor_BWM=write(cache.ancestor_BWM, own_BW1))


def _smaller(number, length):
    """Returns the smaller one, a number if `length` is: XLA wants those."""
    if isinstance(length, int):
        return min(number, length)
    return ops.minimum(number, length)


def _is_ancestor(cache, visible):
    """Returns bool [B, 1, W, M * W]: what each hypothesis descends from."""
    B, W, M = ops.shape(cache.ancestor_BWM)
    first, M = visible or (0, M)
    ancestor_BWM = ops.slice(cache.ancestor_BWM, (0, 0, first), (B, W, M))
    slot = ops.arange(W, dtype="int32")
    position_M = first + ops.arange(M, dtype="int32")
    is_past_M1 = (position_M <= cache.position)[:, None]
    is_ancestor_BWMW = (ancestor_BWM[..., None] == slot) & is_past_M1
    return ops.reshape(is_ancestor_BWMW, (B, 1, W, M * W))


def reorder(cache, parent_BW):
    """Returns the cache in which hypothesis w continues hypothesis parent_BW.

    Args:
        cache: DecoderCache.
        parent_BW: int, which of the W hypotheses each one continues.
    """
    return cache._replace(
        ancestor_BWM=rows.gather(cache.ancestor_BWM, parent_BW)
    )


def shift_right(target_ids_BT):
    """Returns the decoder's input: EOS, then all target ids but the last.

    >>> shift_right(np.array([[7, 8, 1]])).tolist()
    [[1, 7, 8]]

    Source: section 3.1, "offset by one position".
    """
    start_B1 = ops.full_like(target_ids_BT[:, :1], EOS)
    return ops.concatenate([start_B1, target_ids_BT[:, :-1]], axis=1)


@keras.saving.register_keras_serializable("t2t_lite")
class Transformer(keras.Model):
    """The model of "Attention Is All You Need".

    Its call gives logits for the next target tokens, so it compiles and fits
    on batches ((source_ids, shift_right(target_ids)), target_ids).

    Args:
        hparams: HParams, or the dict of one.
        vocabulary_size: int, how many ids there are; that of the hparams when
            not given.
        num_target_ids: int, V of the logits: a parser's targets are the first
            few ids, the symbols of trees; all when not given.

    Source: section 3, Figure 1.
    """

    def __init__(
        self, hparams, vocabulary_size=None, num_target_ids=None, **kwargs
    ):
        kwargs.setdefault("name", "transformer")
        super().__init__(**kwargs)
        if not isinstance(hparams, HParams):
            hparams = from_dict(hparams)
        self.hparams = hparams
        self.vocabulary_size = vocabulary_size or hparams.vocabulary_size
        self.num_target_ids = num_target_ids or self.vocabulary_size
        learned = hparams.positions == "learned"
        sizes = {
            "num_layers": hparams.num_layers,
            "d_model": hparams.d_model,
            "d_ff": hparams.d_ff,
            "num_heads": hparams.num_heads,
            "d_k": hparams.d_k,
            "d_v": hparams.d_v,
            "dropout": hparams.dropout,
            "attention_dropout": hparams.attention_dropout,
            "attention_window": hparams.attention_window,
            "learned_positions": hparams.learned_positions if learned else None,
            "dtype": self.dtype_policy,
        }
        self.embedding = TiedEmbedding(
            self.vocabulary_size,
            hparams.d_model,
            dtype=self.dtype_policy,
            name="embedding",
        )
        self.encoder = Encoder(**sizes, name="encoder")
        self.decoder = Decoder(**sizes, name="decoder")

    def build(self, input_shape=None):
        D = self.hparams.d_model
        self.embedding.build()
        self.encoder.build((None, None, D))
        self.decoder.build((None, None, D), (None, None, D))

    def call(self, inputs, training=False):
        """Returns float32 logits_BTV of the tokens after the given ones.

        Args:
            inputs: (source_ids, target_ids): int [B, S], padded with 0, and int
                [B, T], the target shifted right.
            training: bool, whether to drop.
        """
        return self._logits(self.decode(inputs, training=training))

    def decode(self, inputs, training=False):
        """Returns x_BTD, the decoder's output: what logits are projected from.

        Args: those of `call`.
        """
        source_ids, target_ids = inputs
        return self.decoder(
            self.embedding(target_ids),
            self.encode(source_ids, training=training),
            may_attend_memory=masks.not_padding(source_ids),
            training=training,
        )

    def _logits(self, x):
        return self.embedding.logits(x, self.num_target_ids)

    def encode(self, source_ids, training=False):
        """Returns memory_BSD for int source_ids [B, S]."""
        may_attend = masks.not_padding(source_ids)
        x = self.embedding(source_ids)
        return self.encoder(x, may_attend=may_attend, training=training)

    def start_decoding(self, source_ids, beam_width, max_length=None):
        """Returns (step, cache) for a beam search over one batch of sources.

        Args:
            source_ids: int [B, S], padded with 0.
            beam_width: int, W.
            max_length: int, for how many tokens the cache has room; None for a
                cache that is one position longer after each step, which XLA
                cannot have. A loop over that in a graph takes sources whose
                length the graph does not know.

        Returns:
            step: a function (int ids_BW, cache) to (float32 logits_BWV, cache).
            cache: DecoderCache, empty.
        """
        grows = max_length is None
        if grows:  # From 0 positions, which no graph takes for a fixed number.
            max_length = 0 * ops.shape(source_ids)[1]
        # Once, not in each step: that takes longer than the product.
        projections = self.decoder.fused_qkv()
        projection_DV = self.embedding.projection(self.num_target_ids)

        def step(ids_BW, cache):
            x_BWD = self.embedding(ids_BW)
            x_BWD, cache = self.decoder.step(x_BWD, cache, projections, grows)
            return self.embedding.project(x_BWD, projection_DV), cache

        return step, self.decoder.empty_cache(
            self.encode(source_ids),
            masks.not_padding(source_ids),
            beam_width,
            max_length,
        )

    def get_config(self):
        return super().get_config() | {
            "hparams": self.hparams.__dict__,
            "vocabulary_size": self.vocabulary_size,
            "num_target_ids": self.num_target_ids,
        }

    def compute_output_shape(self, input_shape):
        _, target_shape = input_shape
        return (*target_shape, self.num_target_ids)
