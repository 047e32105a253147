"""The model: an encoder, a decoder, and the embedding they share."""

import dataclasses
from collections.abc import Callable
from typing import Any

import keras
from keras import ops

from t2t_lite.hparams import HParams, from_dict
from t2t_lite.model import cache as decoder_cache
from t2t_lite.model import masks
from t2t_lite.model.cache import DecoderCache
from t2t_lite.model.embedding import PositionEmbedding, TiedEmbedding
from t2t_lite.model.layers import DecoderLayer, EncoderLayer
from t2t_lite.tensor import Shape, Tensor
from t2t_lite.token_ids import EOS


class _Stack(keras.layers.Layer):
    """What encoder and decoder share: embedded tokens, then N layers.

    Args: those of Decoder.
    """

    layer_class: type  # of the N layers

    def __init__(
        self,
        num_layers: int,
        d_model: int,
        d_ff: int,
        num_heads: int,
        d_k: int,
        d_v: int | None = None,
        dropout: float = 0.1,
        attention_dropout: float = 0.0,
        attention_window: int = 0,
        learned_positions: int | None = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        self.supports_masking = True
        self.attention_window = attention_window
        layer_config = {
            "d_ff": d_ff,
            "num_heads": num_heads,
            "d_k": d_k,
            "d_v": d_v,
            "dropout": dropout,
            "attention_dropout": attention_dropout,
            "attention_window": attention_window,
        }
        self._settings = layer_config | {
            "num_layers": num_layers,
            "d_model": d_model,
            "learned_positions": learned_positions,
        }
        policy = self.dtype_policy
        self.position_embedding = PositionEmbedding(
            d_model, learned_positions, dtype=policy, name="positions"
        )
        self.input_dropout = keras.layers.Dropout(
            dropout, dtype=policy, name="input_dropout"
        )
        self.layers = [
            self.layer_class(**layer_config, dtype=policy, name=f"layer_{n}")
            for n in range(num_layers)
        ]

    def _build_input(self, x_shape: Shape) -> None:
        self.position_embedding.build(x_shape)
        self.input_dropout.build(x_shape)

    def embed(
        self, x: Tensor, start: int | Tensor = 0, training: bool = False
    ) -> Tensor:
        """Returns x [B, L, D] with positions added, dropped; section 5.4."""
        x = self.position_embedding(x, start=start)
        return self.input_dropout(x, training=training)

    def get_config(self) -> dict[str, Any]:
        return super().get_config() | self._settings


@keras.saving.register_keras_serializable("t2t_lite")
class Encoder(_Stack):
    """Embedded source tokens to the memory that the decoder attends to.

    Args: those of Decoder.

    Source: section 3.1, "Encoder".
    """

    layer_class = EncoderLayer

    def build(self, x_shape: Shape) -> None:
        self._build_input(x_shape)
        for layer in self.layers:
            layer.build(x_shape)

    def call(
        self,
        x: Tensor,
        may_attend: Tensor | None = None,
        training: bool = False,
        mask: Tensor | None = None,
        x_mask: Tensor | None = None,
    ) -> Tensor:
        """Returns memory_BSD.

        Args:
            x: float [B, S, D], embedded tokens without positions.
            may_attend: bool, broadcasts to [B, H, S, S]; None for no limits
                but that of the mask.
            training: whether to drop.
            mask: bool [B, S], the mask of x that Keras hands on where x is
                the only tensor.
            x_mask: bool [B, S], the same where it is not.
        """
        may_attend = masks.merge(may_attend, x_mask if mask is None else mask)
        x = self.embed(x, training=training)
        for layer in self.layers:
            x = layer(x, may_attend=may_attend, training=training)
        return x

    def compute_output_shape(self, x_shape: Shape) -> Shape:
        return x_shape


@keras.saving.register_keras_serializable("t2t_lite")
class Decoder(_Stack):
    """Embedded target tokens to the vectors that the next tokens come from.

    Args:
        num_layers: N.
        d_model: D.
        d_ff: F.
        num_heads: h.
        d_k: depth of queries and keys.
        d_v: depth of values; d_k when not given.
        dropout: the rate on sub-layers' outputs and on the stack's input.
        attention_dropout: the rate on attention weights.
        attention_window: r, odd: to how many positions around each one
            self-attention is restricted; 0 for all.
        learned_positions: rows of a learned table of positions, or None for
            sines and cosines.

    Source: section 3.1, "Decoder".
    """

    layer_class = DecoderLayer

    def build(self, x_shape: Shape, memory_shape: Shape | None = None) -> None:
        self._build_input(x_shape)
        for layer in self.layers:
            layer.build(x_shape, memory_shape)

    def call(
        self,
        x: Tensor,
        memory: Tensor,
        may_attend_memory: Tensor | None = None,
        training: bool = False,
        memory_mask: Tensor | None = None,
    ) -> Tensor:
        """Returns float [B, T, D]; position t sees x[:, :t + 1] and memory.

        Args:
            x: float [B, T, D], embedded tokens without positions.
            memory: float [B, S, D].
            may_attend_memory: bool, broadcasts to [B, H, T, S]; None for no
                limits but that of the mask.
            training: whether to drop.
            memory_mask: bool [B, S], the mask of the memory that Keras hands
                on.
        """
        may_attend_memory = masks.merge(may_attend_memory, memory_mask)
        # A window of the past needs no mask, which would be L x L.
        may_attend = (
            None if self.attention_window else masks.causal(ops.shape(x)[1])
        )
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

    def compute_output_shape(
        self, x_shape: Shape, memory_shape: Shape | None = None
    ) -> Shape:
        return x_shape

    def fused_qkv(self) -> list[Tensor]:
        """Returns `fused_qkv` of each layer's self-attention, for `step`."""
        return [layer.self_attention.fused_qkv() for layer in self.layers]

    def empty_cache(
        self,
        memory_BSD: Tensor,
        may_attend_B11S: Tensor,
        beam_width: int,
        max_length: int | Tensor,
    ) -> DecoderCache:
        """Returns a cache with room for `max_length` positions.

        The memory's keys and values are computed for all layers.

        Args:
            memory_BSD: float.
            may_attend_B11S: bool, which positions of the memory are tokens.
            beam_width: W.
            max_length: int or scalar tensor, M.
        """
        B, W, M = ops.shape(memory_BSD)[0], beam_width, max_length
        attention = self.layers[0].self_attention
        nothing = decoder_cache.empty_past(
            (B, attention.num_heads, M * W),
            depths=(attention.d_k, attention.d_v),
            dtype=self.compute_dtype,
        )
        return DecoderCache(
            position=ops.convert_to_tensor(0, "int32"),
            ancestor_BWM=ops.zeros((B, W, M), "int32"),
            past=(nothing,) * len(self.layers),
            memory=tuple(
                layer.memory_attention.keys_and_values(memory_BSD)
                for layer in self.layers
            ),
            may_attend_B11S=may_attend_B11S,
        )

    def step(
        self,
        x_BWD: Tensor,
        cache: DecoderCache,
        fused_qkv: list[Tensor],
        *,
        grows: bool = False,
    ) -> tuple[Tensor, DecoderCache]:
        """Returns the next vectors and cache; equals `call` at one position.

        Args:
            x_BWD: float, the embedded newest token of each of W hypotheses.
            cache: the cache of the positions before.
            fused_qkv: what `fused_qkv` returned.
            grows: whether the cache has room for the positions before alone,
                and gets longer.

        Returns:
            (float [B, W, D], DecoderCache).
        """
        cache, view = decoder_cache.start_position(
            cache, self.attention_window, grows
        )
        x_BWD = self._embed_at(cache.position, x_BWD)
        past = []
        for n, layer in enumerate(self.layers):
            x_BWD, layer_past = layer.step(
                x_BWD,
                fused_qkv_DJ=fused_qkv[n],
                past=cache.past[n],
                view=view,
                memory=cache.memory[n],
                may_attend_B11S=cache.may_attend_B11S,
            )
            past.append(layer_past)
        return x_BWD, cache._replace(
            position=cache.position + 1, past=tuple(past)
        )

    def _embed_at(self, position: Tensor, x_BWD: Tensor) -> Tensor:
        """Returns `embed` of W tokens that all stand at one position."""
        B, W, D = ops.shape(x_BWD)
        x = self.embed(ops.reshape(x_BWD, (B * W, 1, D)), start=position)
        return ops.reshape(x, (B, W, D))


def shift_right(target_ids_BT: Tensor) -> Tensor:
    """Returns the decoder's input: EOS, then all target ids but the last.

    >>> import numpy as np
    >>> shift_right(np.array([[7, 8, 1]])).numpy().tolist()
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
        vocabulary_size: how many ids there are; that of the hparams when not
            given.
        num_target_ids: V of the logits: a parser's targets are the first few
            ids, the symbols of trees; all when not given.

    Source: section 3, Figure 1.
    """

    def __init__(
        self,
        hparams: HParams | dict[str, Any],
        vocabulary_size: int | None = None,
        num_target_ids: int | None = None,
        **kwargs: Any,
    ) -> None:
        kwargs.setdefault("name", "transformer")
        super().__init__(**kwargs)
        if not isinstance(hparams, HParams):
            hparams = from_dict(hparams)
        self.hparams = hparams
        self.vocabulary_size = vocabulary_size or hparams.vocabulary_size
        self.num_target_ids = num_target_ids or self.vocabulary_size
        is_learned = hparams.positions == "learned"
        stack_config = {
            "num_layers": hparams.num_layers,
            "d_model": hparams.d_model,
            "d_ff": hparams.d_ff,
            "num_heads": hparams.num_heads,
            "d_k": hparams.d_k,
            "d_v": hparams.d_v,
            "dropout": hparams.dropout,
            "attention_dropout": hparams.attention_dropout,
            "attention_window": hparams.attention_window,
            "learned_positions": (
                hparams.learned_positions if is_learned else None
            ),
            "dtype": self.dtype_policy,
        }
        self.embedding = TiedEmbedding(
            self.vocabulary_size,
            hparams.d_model,
            dtype=self.dtype_policy,
            name="embedding",
        )
        self.encoder = Encoder(**stack_config, name="encoder")
        self.decoder = Decoder(**stack_config, name="decoder")

    def build(self, input_shape: Any = None) -> None:
        D = self.hparams.d_model
        self.embedding.build()
        self.encoder.build((None, None, D))
        self.decoder.build((None, None, D), (None, None, D))

    def call(
        self, inputs: tuple[Tensor, Tensor], training: bool = False
    ) -> Tensor:
        """Returns float32 logits_BTV of the tokens after the given ones.

        Args:
            inputs: (source_ids, target_ids): int [B, S], padded with 0, and int
                [B, T], the target shifted right.
            training: whether to drop.
        """
        x_BTD = self.decode(inputs, training=training)
        return self.embedding.logits(x_BTD, self.num_target_ids)

    def decode(
        self, inputs: tuple[Tensor, Tensor], training: bool = False
    ) -> Tensor:
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

    def encode(self, source_ids: Tensor, training: bool = False) -> Tensor:
        """Returns memory_BSD for int source_ids [B, S]."""
        may_attend = masks.not_padding(source_ids)
        x = self.embedding(source_ids)
        return self.encoder(x, may_attend=may_attend, training=training)

    def start_decoding(
        self,
        source_ids: Tensor,
        beam_width: int,
        max_length: int | None = None,
    ) -> tuple[Callable, DecoderCache]:
        """Returns (step, cache) for a beam search over one batch of sources.

        Args:
            source_ids: int [B, S], padded with 0.
            beam_width: W.
            max_length: for how many tokens the cache has room; None for a
                cache that is one position longer after each step, which XLA
                cannot have. A loop over that in a graph takes sources whose
                length the graph does not know.

        Returns:
            step: a function (int ids_BW, cache) to (float32 logits_BWV, cache).
            cache: DecoderCache, empty.
        """
        grows = max_length is None
        # Once, not in each step: that takes longer than the product.
        fused_qkv = self.decoder.fused_qkv()
        projection_DV = self.embedding.projection(self.num_target_ids)

        def step(ids_BW, cache):
            x_BWD = self.embedding(ids_BW)
            x_BWD, cache = self.decoder.step(
                x_BWD, cache, fused_qkv, grows=grows
            )
            return self.embedding.project(x_BWD, projection_DV), cache

        return step, self.decoder.empty_cache(
            self.encode(source_ids),
            masks.not_padding(source_ids),
            beam_width=beam_width,
            max_length=(
                decoder_cache.unknown_zero(source_ids) if grows else max_length
            ),
        )

    def get_config(self) -> dict[str, Any]:
        return super().get_config() | {
            "hparams": dataclasses.asdict(self.hparams),
            "vocabulary_size": self.vocabulary_size,
            "num_target_ids": self.num_target_ids,
        }

    def compute_output_shape(self, input_shape: tuple[Shape, Shape]) -> Shape:
        _, target_shape = input_shape
        return (*target_shape, self.num_target_ids)
