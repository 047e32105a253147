"""The layers that the encoder and the decoder are stacks of."""

from typing import Any, NamedTuple

import keras
from keras import ops

from t2t_lite.errors import (
    require,
    require_bool,
    require_int,
    require_positive,
    require_rate,
)
from t2t_lite.model import masks, rows
from t2t_lite.model.cache import PastView
from t2t_lite.model.multi_head_attention import KeysValues, MultiHeadAttention
from t2t_lite.model.products import Matrix, multiply
from t2t_lite.tensor import Shape, Tensor


@keras.saving.register_keras_serializable("t2t_lite")
class FeedForward(keras.layers.Layer):
    """FFN(x) = max(0, x W_1 + b_1) W_2 + b_2, at each position alike.

    Args:
        d_ff: F, the width of the hidden layer.
        dropout: the rate on the hidden layer, after its ReLU.
        activation: "relu", or another of Keras' activations.

    Source: section 3.3, Eq. 2; the paper has no dropout here.
    """

    def __init__(
        self,
        d_ff: int,
        dropout: float = 0.0,
        activation: str = "relu",
        **kwargs: Any,
    ) -> None:
        require_int(1, d_ff=d_ff)
        require_rate(dropout=dropout)
        keras.activations.get(activation)  # Refuses an unknown one.
        super().__init__(**kwargs)
        self.supports_masking = True
        self.d_ff = int(d_ff)  # Keras' Dense does not take NumPy integers.
        self.dropout = dropout
        self.activation = activation

    def build(self, x_shape: Shape) -> None:
        dense, policy = keras.layers.Dense, self.dtype_policy
        self.hidden = dense(
            self.d_ff, self.activation, dtype=policy, name="hidden"
        )
        self.output_layer = dense(x_shape[-1], dtype=policy, name="output")
        self.hidden_dropout = keras.layers.Dropout(
            self.dropout, dtype=policy, name="hidden_dropout"
        )
        hidden_shape = (*x_shape[:-1], self.d_ff)
        self.hidden.build(x_shape)
        self.hidden_dropout.build(hidden_shape)
        self.output_layer.build(hidden_shape)

    def call(self, x: Tensor, training: bool = False) -> Tensor:
        """Returns float [B, L, D] for x [B, L, D]; drops if `training`."""
        rows.require_floats(x=x)
        hidden_NF = self.hidden(rows.flatten(x))
        hidden_NF = self.hidden_dropout(hidden_NF, training=training)
        return rows.restore(self.output_layer(hidden_NF), like=x)

    def step(self, x: Tensor, hidden: Matrix, output: Matrix) -> Tensor:
        """Returns `call` of x, by matrices that stand for the layer's own.

        Args:
            x: float [B, L, D].
            hidden: W_1, maybe as an Int8Matrix.
            output: W_2, likewise.
        """
        dtype = self.compute_dtype
        hidden_NF = _with_bias(
            multiply(rows.flatten(x), hidden, dtype), self.hidden.bias
        )
        hidden_NF = self.hidden.activation(hidden_NF)
        output_ND = _with_bias(
            multiply(hidden_NF, output, dtype), self.output_layer.bias
        )
        return rows.restore(output_ND, like=x)

    def compute_output_shape(self, x_shape: Shape) -> Shape:
        return x_shape

    def get_config(self) -> dict[str, Any]:
        return super().get_config() | {
            "d_ff": self.d_ff,
            "dropout": self.dropout,
            "activation": self.activation,
        }


def _with_bias(x_NJ: Tensor, bias_J: keras.Variable) -> Tensor:
    # Not +: Keras makes one operation out of this sum and a product.
    return ops.add(x_NJ, ops.cast(bias_J, x_NJ.dtype))


def layer_norm(
    name: str, epsilon: float, policy: keras.DTypePolicy
) -> keras.layers.LayerNormalization:
    """Returns a layer normalization whose weights stay float32.

    Args:
        name: of the layer.
        epsilon: what is added to the variance.
        policy: of the model.
    """
    return keras.layers.LayerNormalization(
        epsilon=epsilon, dtype=_float32_weights(policy), name=name
    )


def require_memory(memory: Tensor | None) -> None:
    """Raises InputError if a decoder would attend to itself instead."""
    rule = "memory must be [B, S, D], the encoder's output"
    require(rule, memory is not None, memory=memory)


def _float32_weights(policy: keras.DTypePolicy) -> keras.DTypePolicy:
    """Returns a policy for weights that are never used in a lower precision."""
    if policy.variable_dtype in ("bfloat16", "float16"):
        return keras.DTypePolicy(f"mixed_{policy.compute_dtype}")
    return policy


class _TransformerLayer(keras.layers.Layer):
    """What encoder and decoder layers share: their parts, and Add & Norm."""

    def __init__(
        self,
        d_ff: int,
        num_heads: int,
        d_k: int,
        d_v: int | None = None,
        dropout: float = 0.1,
        attention_dropout: float = 0.0,
        relu_dropout: float = 0.0,
        attention_window: int = 0,
        norm: str = "post",
        norm_epsilon: float = 1e-6,
        activation: str = "relu",
        attention_bias: bool = False,
        **kwargs: Any,
    ) -> None:
        d_v = d_k if d_v is None else d_v
        require_int(1, d_ff=d_ff, num_heads=num_heads, d_k=d_k, d_v=d_v)
        require_rate(
            dropout=dropout,
            attention_dropout=attention_dropout,
            relu_dropout=relu_dropout,
        )
        require_int(0, attention_window=attention_window)
        require(
            "attention_window must be 0 or odd: a position, and equally many "
            "on each side",
            attention_window == 0 or attention_window % 2 == 1,
            attention_window=attention_window,
        )
        rule = "norm must be post or pre"
        require(rule, norm in ("post", "pre"), norm=norm)
        require_positive(norm_epsilon=norm_epsilon)
        require_bool(attention_bias=attention_bias)
        keras.activations.get(activation)  # Refuses an unknown one.
        super().__init__(**kwargs)
        self.supports_masking = True
        self.d_ff = d_ff
        self.num_heads = num_heads
        self.d_k = d_k
        self.d_v = d_v
        self.dropout = dropout
        self.attention_dropout = attention_dropout
        self.relu_dropout = relu_dropout
        self.attention_window = attention_window
        self.norm = norm
        self.norm_epsilon = norm_epsilon
        self.activation = activation
        self.attention_bias = attention_bias
        self.norms, self.dropouts = {}, {}

    def _build_attention(
        self,
        name: str,
        x_shape: Shape,
        memory_shape: Shape | None = None,
        window: tuple[int, int] | None = None,
    ) -> MultiHeadAttention:
        layer = MultiHeadAttention(
            self.num_heads,
            self.d_k,
            self.d_v,
            dropout=self.attention_dropout,
            window=window,
            use_bias=self.attention_bias,
            dtype=self.dtype_policy,
            name=name,
        )
        layer.build(x_shape, memory_shape)
        self._build_add_and_norm(name, x_shape)
        return layer

    def _build_feed_forward(self, x_shape: Shape) -> FeedForward:
        layer = FeedForward(
            self.d_ff,
            dropout=self.relu_dropout,
            activation=self.activation,
            dtype=self.dtype_policy,
            name="feed_forward",
        )
        layer.build(x_shape)
        self._build_add_and_norm(layer.name, x_shape)
        return layer

    def _build_add_and_norm(self, name: str, x_shape: Shape) -> None:
        self.norms[name] = layer_norm(
            f"{name}_norm", self.norm_epsilon, self.dtype_policy
        )
        self.norms[name].build(x_shape)
        self.dropouts[name] = keras.layers.Dropout(
            self.dropout, dtype=self.dtype_policy, name=f"{name}_dropout"
        )
        self.dropouts[name].build(x_shape)

    def _input(self, x: Tensor, sublayer: keras.layers.Layer) -> Tensor:
        """Returns what a sub-layer takes: x, normalized first if "pre"."""
        return self.norms[sublayer.name](x) if self.norm == "pre" else x

    def _add_and_norm(
        self,
        x: Tensor,
        sublayer: keras.layers.Layer,
        output: Tensor,
        *,
        training: bool = False,
    ) -> Tensor:
        """Returns LayerNorm(x + Dropout(output of the sublayer)).

        If the norm comes before the sub-layer, only the sum.

        Source: sections 3.1 and 5.4.
        """
        dropped = self.dropouts[sublayer.name](output, training=training)
        x = x + dropped
        return x if self.norm == "pre" else self.norms[sublayer.name](x)

    def get_config(self) -> dict[str, Any]:
        return super().get_config() | {
            "d_ff": self.d_ff,
            "num_heads": self.num_heads,
            "d_k": self.d_k,
            "d_v": self.d_v,
            "dropout": self.dropout,
            "attention_dropout": self.attention_dropout,
            "relu_dropout": self.relu_dropout,
            "attention_window": self.attention_window,
            "norm": self.norm,
            "norm_epsilon": self.norm_epsilon,
            "activation": self.activation,
            "attention_bias": self.attention_bias,
        }


@keras.saving.register_keras_serializable("t2t_lite")
class EncoderLayer(_TransformerLayer):
    """Self-attention, then feed-forward, each with Add & Norm after it.

    Args:
        d_ff: F.
        num_heads: h.
        d_k: depth of queries and keys.
        d_v: depth of values; d_k when not given.
        dropout: the rate on each sub-layer's output.
        attention_dropout: the rate on attention weights.
        relu_dropout: the rate after the ReLU.
        attention_window: r, odd: how many positions around each one
            self-attention is restricted to; 0 for all.
        norm: "post", or "pre": x + Sublayer(LayerNorm(x)), as in Xiong et al.
            2020.
        norm_epsilon: what layer normalization adds to the variance.
        activation: that of FeedForward.
        attention_bias: `use_bias` of MultiHeadAttention.

    Source: section 3.1, "Encoder".
    """

    def build(self, x_shape: Shape) -> None:
        reach = self.attention_window // 2
        window = (reach, reach) if self.attention_window else None
        self.self_attention = self._build_attention(
            "self_attention", x_shape, window=window
        )
        self.feed_forward = self._build_feed_forward(x_shape)

    def call(
        self,
        x: Tensor,
        may_attend: Tensor | None = None,
        training: bool = False,
        mask: Tensor | None = None,
        x_mask: Tensor | None = None,
    ) -> Tensor:
        """Returns float [B, S, D] for x [B, S, D].

        Args:
            x: float [B, S, D].
            may_attend: bool, broadcasts to [B, H, S, S]; None for no limits
                but the mask's.
            training: whether to apply dropout.
            mask: bool [B, S], the mask of x that Keras passes on if x is the
                only tensor.
            x_mask: bool [B, S], the same if it is not.
        """
        may_attend = masks.merge(may_attend, x_mask if mask is None else mask)
        attended = self.self_attention(
            self._input(x, self.self_attention),
            may_attend=may_attend,
            training=training,
        )
        x = self._add_and_norm(
            x, self.self_attention, attended, training=training
        )
        output = self.feed_forward(
            self._input(x, self.feed_forward), training=training
        )
        return self._add_and_norm(
            x, self.feed_forward, output, training=training
        )

    def compute_output_shape(self, x_shape: Shape) -> Shape:
        return x_shape


class StepMatrices(NamedTuple):
    """What one decoder layer multiplies with in each step of a search."""

    qkv: Matrix  # `fused_qkv` of self-attention
    self_output: Matrix
    memory_query: Matrix
    memory_output: Matrix
    hidden: Matrix  # of feed-forward, as the next one
    output: Matrix


@keras.saving.register_keras_serializable("t2t_lite")
class DecoderLayer(_TransformerLayer):
    """Self-attention, attention to the memory, feed-forward; Add & Norm each.

    The arguments are those of EncoderLayer.

    Source: section 3.1, "Decoder".
    """

    def build(self, x_shape: Shape, memory_shape: Shape | None = None) -> None:
        reach = self.attention_window // 2
        window = (reach, 0) if self.attention_window else None
        self.self_attention = self._build_attention(
            "self_attention", x_shape, window=window
        )
        self.memory_attention = self._build_attention(
            "memory_attention", x_shape, memory_shape
        )
        self.feed_forward = self._build_feed_forward(x_shape)

    def call(
        self,
        x: Tensor,
        memory: Tensor,
        may_attend: Tensor | None = None,
        may_attend_memory: Tensor | None = None,
        training: bool = False,
        memory_mask: Tensor | None = None,
    ) -> Tensor:
        """Returns float [B, T, D] for x [B, T, D].

        Args:
            x: float [B, T, D].
            memory: float [B, S, D], the encoder's output.
            may_attend: bool, broadcasts to [B, H, T, T]; None for no limits
                but the window's, which holds nothing ahead.
            may_attend_memory: bool, broadcasts to [B, H, T, S]; None for no
                limits but the mask's.
            training: whether to apply dropout.
            memory_mask: bool [B, S], the mask of the memory that Keras passes
                on.
        """
        require_memory(memory)
        may_attend_memory = masks.merge(may_attend_memory, memory_mask)
        attended = self.self_attention(
            self._input(x, self.self_attention),
            may_attend=may_attend,
            training=training,
        )
        x = self._add_and_norm(
            x, self.self_attention, attended, training=training
        )
        attended = self.memory_attention(
            self._input(x, self.memory_attention),
            memory,
            may_attend=may_attend_memory,
            training=training,
        )
        x = self._add_and_norm(
            x, self.memory_attention, attended, training=training
        )
        output = self.feed_forward(
            self._input(x, self.feed_forward), training=training
        )
        return self._add_and_norm(
            x, self.feed_forward, output, training=training
        )

    def step_matrices(self) -> StepMatrices:
        """Returns the matrices of `step`, in the layer's precision."""
        attention, memory_attention = self.self_attention, self.memory_attention
        hidden, output = (
            self.feed_forward.hidden,
            self.feed_forward.output_layer,
        )
        matrices = (
            attention.fused_qkv(),
            attention.output_matrix,
            memory_attention.query,
            memory_attention.output_matrix,
            hidden.kernel,
            output.kernel,
        )
        return StepMatrices(
            *(ops.cast(matrix, self.compute_dtype) for matrix in matrices)
        )

    def step(
        self,
        x_BWD: Tensor,
        *,
        matrices: StepMatrices,
        past: KeysValues,
        view: PastView,
        memory: KeysValues,
        may_attend_B11S: Tensor,
    ) -> tuple[Tensor, KeysValues]:
        """Returns the output at one position, and the past including it.

        Args:
            x_BWD: float, the vector of the newest token of each hypothesis.
            matrices: what `step_matrices` returned, or Int8Matrix of them.
            past: keys and values of self-attention at all positions.
            view: where to write in the past, and what of it to see.
            memory: keys and values of attention to the memory.
            may_attend_B11S: bool, which positions of the memory are tokens.

        Returns:
            (float [B, W, D], KeysValues).
        """
        attention = self.self_attention
        q_BHWK, k_BHWK, v_BHWK = attention.project_qkv(
            self._input(x_BWD, attention), matrices.qkv
        )
        past = view.write(past, KeysValues(k_BHWK, v_BHWK))
        attended = attention.attend(
            q_BHWK,
            view.read(past),
            view.is_ancestor_B1WP,
            output=matrices.self_output,
        )
        x_BWD = self._add_and_norm(x_BWD, attention, attended)
        attention = self.memory_attention
        q_BHWK = attention.queries(
            self._input(x_BWD, attention), matrices.memory_query
        )
        attended = attention.attend(
            q_BHWK, memory, may_attend_B11S, output=matrices.memory_output
        )
        x_BWD = self._add_and_norm(x_BWD, attention, attended)
        output = self.feed_forward.step(
            self._input(x_BWD, self.feed_forward),
            matrices.hidden,
            matrices.output,
        )
        return self._add_and_norm(x_BWD, self.feed_forward, output), past

    def compute_output_shape(
        self, x_shape: Shape, memory_shape: Shape | None = None
    ) -> Shape:
        return x_shape
