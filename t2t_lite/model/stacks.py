"""The stacks of layers: the encoder and the decoder."""

from collections.abc import Sequence
from typing import Any

import keras
from keras import ops

from t2t_lite.errors import require_int
from t2t_lite.model import cache as decoder_cache
from t2t_lite.model import masks
from t2t_lite.model.cache import DecoderCache
from t2t_lite.model.embedding import PositionEmbedding
from t2t_lite.model.layers import (
    DecoderLayer,
    EncoderLayer,
    StepMatrices,
    layer_norm,
    require_memory,
)
from t2t_lite.tensor import Shape, Tensor


class _Stack(keras.layers.Layer):
    """What encoder and decoder share: embedded tokens, then N layers.

    The arguments are those of Decoder.
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
        relu_dropout: float = 0.0,
        attention_window: int = 0,
        learned_positions: int | None = None,
        marian_positions: bool = False,
        norm: str = "post",
        norm_epsilon: float = 1e-6,
        activation: str = "relu",
        attention_bias: bool = False,
        **kwargs: Any,
    ) -> None:
        require_int(1, num_layers=num_layers)
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
            "relu_dropout": relu_dropout,
            "attention_window": attention_window,
            "norm": norm,
            "norm_epsilon": norm_epsilon,
            "activation": activation,
            "attention_bias": attention_bias,
        }
        self._settings = layer_config | {
            "num_layers": num_layers,
            "d_model": d_model,
            "learned_positions": learned_positions,
            "marian_positions": marian_positions,
        }
        policy = self.dtype_policy
        self.position_embedding = PositionEmbedding(
            d_model,
            learned_positions,
            marian_positions,
            dtype=policy,
            name="positions",
        )
        self.input_dropout = keras.layers.Dropout(
            dropout, dtype=policy, name="input_dropout"
        )
        self.layers = [
            self.layer_class(**layer_config, dtype=policy, name=f"layer_{n}")
            for n in range(num_layers)
        ]
        self.top_norm = None
        if norm == "pre":  # Otherwise the last layer ends with one.
            self.top_norm = layer_norm("top_norm", norm_epsilon, policy)

    def _build_ends(self, x_shape: Shape) -> None:
        self.position_embedding.build(x_shape)
        self.input_dropout.build(x_shape)
        if self.top_norm is not None:
            self.top_norm.build(x_shape)

    def _top(self, x: Tensor) -> Tensor:
        """Returns the stack's output: x, normalized if it is not yet."""
        return x if self.top_norm is None else self.top_norm(x)

    def embed(
        self, x: Tensor, start: int | Tensor = 0, training: bool = False
    ) -> Tensor:
        """Returns x [B, L, D] with positions, then dropout; section 5.4."""
        x = self.position_embedding(x, start=start)
        return self.input_dropout(x, training=training)

    def get_config(self) -> dict[str, Any]:
        return super().get_config() | self._settings


@keras.saving.register_keras_serializable("t2t_lite")
class Encoder(_Stack):
    """Turns embedded source tokens into the memory the decoder attends to.

    The arguments are those of Decoder.

    Source: section 3.1, "Encoder".
    """

    layer_class = EncoderLayer

    def build(self, x_shape: Shape) -> None:
        self._build_ends(x_shape)
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
                but the mask's.
            training: whether to apply dropout.
            mask: bool [B, S], the mask of x that Keras passes on if x is the
                only tensor.
            x_mask: bool [B, S], the same if it is not.
        """
        may_attend = masks.merge(may_attend, x_mask if mask is None else mask)
        x = self.embed(x, training=training)
        for layer in self.layers:
            x = layer(x, may_attend=may_attend, training=training)
        return self._top(x)

    def compute_output_shape(self, x_shape: Shape) -> Shape:
        return x_shape


@keras.saving.register_keras_serializable("t2t_lite")
class Decoder(_Stack):
    """Turns embedded target tokens into vectors that the next ones come from.

    Args:
        num_layers: N.
        d_model: D.
        d_ff: F.
        num_heads: h.
        d_k: depth of queries and keys.
        d_v: depth of values; d_k when not given.
        dropout: the rate on sub-layers' outputs and on the stack's input.
        attention_dropout: the rate on attention weights.
        relu_dropout: the rate after the ReLU.
        attention_window: r, odd: how many positions around each one
            self-attention is restricted to; 0 for all.
        learned_positions: rows of a learned table of positions, or None for
            sines and cosines.
        marian_positions: `marian` of PositionEmbedding.
        norm: that of EncoderLayer; with "pre", the stack's output is
            normalized too.
        norm_epsilon: that of EncoderLayer.
        activation: that of FeedForward.
        attention_bias: `use_bias` of MultiHeadAttention.

    Source: section 3.1, "Decoder".
    """

    layer_class = DecoderLayer

    def build(self, x_shape: Shape, memory_shape: Shape | None = None) -> None:
        self._build_ends(x_shape)
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
                limits but the mask's.
            training: whether to apply dropout.
            memory_mask: bool [B, S], the mask of the memory that Keras passes
                on.
        """
        require_memory(memory)
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
        return self._top(x)

    def compute_output_shape(
        self, x_shape: Shape, memory_shape: Shape | None = None
    ) -> Shape:
        return x_shape

    def step_matrices(self) -> list[StepMatrices]:
        """Returns what each layer multiplies with in `step`."""
        return [layer.step_matrices() for layer in self.layers]

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
        matrices: Sequence[StepMatrices],
        *,
        grows: bool = False,
    ) -> tuple[Tensor, DecoderCache]:
        """Returns the next vectors and cache; equals `call` at one position.

        Args:
            x_BWD: float, the embedded newest token of each of W hypotheses.
            cache: the cache of the positions before.
            matrices: what `step_matrices` returned, or Int8Matrix of them.
            grows: whether the cache has room only for the positions before,
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
                matrices=matrices[n],
                past=cache.past[n],
                view=view,
                memory=cache.memory[n],
                may_attend_B11S=cache.may_attend_B11S,
            )
            past.append(layer_past)
        return self._top(x_BWD), cache._replace(
            position=cache.position + 1, past=tuple(past)
        )

    def _embed_at(self, position: Tensor, x_BWD: Tensor) -> Tensor:
        """Returns `embed` of W tokens that all stand at one position."""
        B, W, D = ops.shape(x_BWD)
        x = self.embed(ops.reshape(x_BWD, (B * W, 1, D)), start=position)
        return ops.reshape(x, (B, W, D))
