"""The model: an encoder, a decoder, and the embedding they share."""

import dataclasses
from collections.abc import Callable
from typing import Any, NamedTuple

import keras
from keras import ops

from t2t_lite.errors import InputError, require, require_int
from t2t_lite.hparams import HParams, from_dict, preset
from t2t_lite.model import cache as decoder_cache
from t2t_lite.model import masks
from t2t_lite.model.cache import DecoderCache
from t2t_lite.model.embedding import TiedEmbedding
from t2t_lite.model.layers import StepMatrices
from t2t_lite.model.products import Matrix, round_to_int8
from t2t_lite.model.stacks import Decoder, Encoder
from t2t_lite.tensor import Shape, Tensor, require_dense
from t2t_lite.token_ids import EOS


def shift_right(target_ids_BT: Tensor) -> Tensor:
    """Returns the decoder's input: EOS, then all target ids but the last.

    >>> import numpy as np
    >>> shift_right(np.array([[7, 8, 1]])).numpy().tolist()
    [[1, 7, 8]]

    Source: section 3.1, "offset by one position".
    """
    start_B1 = ops.full_like(target_ids_BT[:, :1], EOS)
    return ops.concatenate([start_B1, target_ids_BT[:, :-1]], axis=1)


class _SearchMatrices(NamedTuple):
    """What the steps of a search multiply with."""

    decoder: list[StepMatrices]  # of each layer
    projection: Matrix  # to the logits


@keras.saving.register_keras_serializable("t2t_lite")
class Transformer(keras.Model):
    """The model of "Attention Is All You Need".

    Its call gives logits for the next target tokens, so it compiles and fits
    on batches ((source_ids, shift_right(target_ids)), target_ids).

    Its layers: `embedding` of the targets and, unless the hparams untie them,
    of everything else; `source_embedding`; `output_embedding`, whose matrix
    gives the logits; `encoder` and `decoder`.

    Args:
        hparams: HParams, such as PRESETS["transformer_base"], or a dict of
            their fields.
        vocabulary_size: how many ids sources have; that of the hparams when
            not given.
        num_target_ids: V of the logits: a parser's targets are the first few
            ids, the symbols of trees. As many as sources have when not given.

    Raises:
        InputError: no such model can exist.

    Source: section 3, Figure 1.
    """

    def __init__(
        self,
        hparams: HParams | dict[str, Any],
        vocabulary_size: int | None = None,
        num_target_ids: int | None = None,
        **kwargs: Any,
    ) -> None:
        hparams = _checked(hparams)
        if vocabulary_size is None:
            vocabulary_size = hparams.vocabulary_size
        if num_target_ids is None:
            num_target_ids = vocabulary_size
        require_int(
            1, vocabulary_size=vocabulary_size, num_target_ids=num_target_ids
        )
        has_own_source = hparams.tied_embeddings in ("target", "none")
        require(
            f"num_target_ids must be at most vocabulary_size={vocabulary_size}",
            num_target_ids <= vocabulary_size or has_own_source,
            num_target_ids=num_target_ids,
        )
        kwargs.setdefault("name", "transformer")
        super().__init__(**kwargs)
        self.hparams = hparams
        self.vocabulary_size = vocabulary_size
        self.num_target_ids = num_target_ids
        self._int8_matrices = None
        is_learned = hparams.positions == "learned"
        stack_config = {
            "d_model": hparams.d_model,
            "d_ff": hparams.d_ff,
            "num_heads": hparams.num_heads,
            "d_k": hparams.d_k,
            "d_v": hparams.d_v,
            "dropout": hparams.dropout,
            "attention_dropout": hparams.attention_dropout,
            "relu_dropout": hparams.relu_dropout,
            "attention_window": hparams.attention_window,
            "learned_positions": (
                hparams.learned_positions if is_learned else None
            ),
            "marian_positions": hparams.positions == "marian",
            "norm": hparams.norm,
            "norm_epsilon": hparams.norm_epsilon,
            "activation": hparams.activation,
            "attention_bias": hparams.attention_bias,
            "dtype": self.dtype_policy,
        }
        self._add_embeddings(has_own_source)
        self.encoder = Encoder(
            hparams.num_layers, **stack_config, name="encoder"
        )
        self.decoder = Decoder(
            hparams.decoder_layers, **stack_config, name="decoder"
        )

    def _add_embeddings(self, has_own_source: bool) -> None:
        """Makes the one embedding, or as many as the hparams say."""
        has_own_output = self.hparams.tied_embeddings in ("input", "none")
        has_bias = self.hparams.logit_bias
        self.embedding = self._make_embedding(
            "embedding",
            self.num_target_ids if has_own_source else self.vocabulary_size,
            has_bias and not has_own_output,
        )
        self.source_embedding = self.output_embedding = self.embedding
        if has_own_source:
            self.source_embedding = self._make_embedding(
                "source_embedding", self.vocabulary_size
            )
        if has_own_output:
            self.output_embedding = self._make_embedding(
                "output_embedding", self.num_target_ids, has_bias
            )

    def _make_embedding(
        self, name: str, size: int, has_logit_bias: bool = False
    ) -> TiedEmbedding:
        return TiedEmbedding(
            size,
            self.hparams.d_model,
            self.hparams.embedding_scale or None,
            has_logit_bias=has_logit_bias,
            dtype=self.dtype_policy,
            name=name,
        )

    def build(self, input_shape: Any = None) -> None:
        if input_shape is not None:
            _require_pair_of_shapes(input_shape)
        D = self.hparams.d_model
        self.embedding.build()
        for embedding in (self.source_embedding, self.output_embedding):
            if embedding is not self.embedding:
                embedding.build()
        self.encoder.build((None, None, D))
        self.decoder.build((None, None, D), (None, None, D))

    def call(
        self, inputs: tuple[Tensor, Tensor], training: bool = False
    ) -> Tensor:
        """Returns float32 logits_BTV of the tokens after the given ones.

        Args:
            inputs: (source_ids, target_ids): int [B, S], padded with 0, and int
                [B, T], the target shifted right.
            training: whether to apply dropout.
        """
        x_BTD = self.decode(inputs, training=training)
        return self.output_embedding.logits(x_BTD, self.num_target_ids)

    def decode(
        self, inputs: tuple[Tensor, Tensor], training: bool = False
    ) -> Tensor:
        """Returns x_BTD, the decoder's output: what logits are projected from.

        The arguments are those of `call`.
        """
        _require_pair(inputs)
        source_ids, target_ids = inputs
        _require_ids(source_ids, target_ids)
        if None in (source_ids.shape[0], target_ids.shape[0]):
            # Otherwise a single row would be used for all.
            sizes = ops.shape(source_ids)[0], ops.shape(target_ids)[1]
            target_ids = ops.reshape(target_ids, sizes)
        x_BTD = self.embedding(target_ids)
        if self.hparams.decoder_start == "zeros":
            x_BTD = _zero_where(ops.arange(ops.shape(x_BTD)[1]) == 0, x_BTD)
        return self.decoder(
            x_BTD,
            self.encode(source_ids, training=training),
            may_attend_memory=masks.not_padding(source_ids),
            training=training,
        )

    def encode(self, source_ids: Tensor, training: bool = False) -> Tensor:
        """Returns memory_BSD for int source_ids [B, S]."""
        may_attend = masks.not_padding(source_ids)
        x = self.source_embedding(source_ids)
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
            max_length: how many tokens the cache has room for; None for a
                cache that grows by one position in each step, which XLA does
                not allow. A loop over that in a graph needs sources whose
                length the graph does not know.

        Returns:
            step: a function from (int ids_BW, cache) to (float32 logits_BWV,
                cache).
            cache: DecoderCache, empty.
        """
        grows = max_length is None
        # Once, not in each step: that takes longer than the product.
        matrices = self._int8_matrices or self._search_matrices()

        def step(ids_BW, cache):
            x_BWD = self.embedding(ids_BW)
            if self.hparams.decoder_start == "zeros":
                x_BWD = _zero_where(cache.position == 0, x_BWD)
            x_BWD, cache = self.decoder.step(
                x_BWD, cache, matrices.decoder, grows=grows
            )
            logits_BWV = self.output_embedding.project(
                x_BWD, matrices.projection
            )
            return logits_BWV, cache

        return step, self.decoder.empty_cache(
            self.encode(source_ids),
            masks.not_padding(source_ids),
            beam_width=beam_width,
            max_length=(
                decoder_cache.unknown_zero(source_ids) if grows else max_length
            ),
        )

    def _search_matrices(self) -> _SearchMatrices:
        return _SearchMatrices(
            self.decoder.step_matrices(),
            self.output_embedding.projection(self.num_target_ids),
        )

    def search_in_int8(self) -> None:
        """Rounds the matrices, as they are now, that steps of a search read.

        Each column has 255 values and a scale. All else that is computed stays
        as it is, and files of the model know nothing of this.

        Raises:
            InputError: the model's dtype is not float32, or it has no weights
                yet.
        """
        require(
            "search_in_int8 needs a model of dtype float32",
            self.dtype_policy.name == "float32",
            dtype=self.dtype_policy.name,
        )
        require("search_in_int8 needs weights: build the model", self.built)
        decoder, projection = self._search_matrices()
        self._int8_matrices = _SearchMatrices(
            [StepMatrices(*map(round_to_int8, layer)) for layer in decoder],
            round_to_int8(projection),
        )

    @property
    def search_precision(self) -> str:
        """The dtype of a search's products with weights, such as "int8"."""
        return "int8" if self._int8_matrices else self.compute_dtype

    def get_config(self) -> dict[str, Any]:
        return super().get_config() | {
            "hparams": dataclasses.asdict(self.hparams),
            "vocabulary_size": self.vocabulary_size,
            "num_target_ids": self.num_target_ids,
        }

    def compute_output_shape(self, input_shape: tuple[Shape, Shape]) -> Shape:
        _, target_shape = input_shape
        return (*target_shape, self.num_target_ids)


def _zero_where(is_start: Tensor, x_BLD: Tensor) -> Tensor:
    """Returns vectors, with zeros in place of those at the start.

    Args:
        is_start: bool, [L] or one for all positions.
        x_BLD: float.
    """
    return ops.where(ops.reshape(is_start, (-1, 1)), 0.0, x_BLD)


_PAIR = (
    "inputs must be a pair (source_ids, target_ids), the target shifted right; "
    "teacher_forced makes such pairs from a Dataset of batches"
)


def _require_pair(inputs: Any) -> None:
    is_pair = isinstance(inputs, (tuple, list)) and len(inputs) == 2
    require(_PAIR, is_pair, inputs=type(inputs).__name__)


def _require_pair_of_shapes(shape: Any) -> None:
    """Raises InputError before Keras makes weights for what is not a pair.

    Weights made within a failed `fit` would stay without values.
    """
    is_pair = isinstance(shape, (tuple, list)) and len(shape) == 2
    is_nested = is_pair and all(hasattr(s, "__len__") for s in shape)
    require(_PAIR, is_nested, shape=shape)


def _require_ids(source_ids: Tensor, target_ids: Tensor) -> None:
    """Raises InputError if these cannot be the ids of pairs."""
    require_dense(source_ids=source_ids, target_ids=target_ids)
    for name, ids in (("source_ids", source_ids), ("target_ids", target_ids)):
        is_table = hasattr(ids, "shape") and len(ids.shape) == 2
        if not is_table or "int" not in keras.backend.standardize_dtype(
            ids.dtype
        ):
            raise InputError(
                f"{name} must be integers [sentences, length]; received "
                f"{getattr(ids, 'dtype', type(ids).__name__)} "
                f"{list(getattr(ids, 'shape', []))}"
            )
    B, num_targets = source_ids.shape[0], target_ids.shape[0]
    if None not in (B, num_targets):
        rule = "source_ids and target_ids must have the same number of rows"
        require(rule, num_targets == B, source_ids=B, target_ids=num_targets)


def _checked(hparams: Any) -> HParams:
    """Returns HParams, given as such or as a dict of their fields."""
    if isinstance(hparams, str):
        preset(hparams)  # If there is none, its error suggests one.
        raise TypeError(
            f"hparams must be HParams; received the name {hparams!r}: give "
            f't2t_lite.PRESETS["{hparams}"]'
        )
    if isinstance(hparams, dict):
        return from_dict(hparams)
    if not isinstance(hparams, HParams):
        raise TypeError(
            "hparams must be HParams or a dict of their fields; received "
            f"{hparams!r}"
        )
    return hparams
