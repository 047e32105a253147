"""Several heads of attention, each with its own projection."""

import contextlib
import contextvars
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import keras
from keras import ops

from t2t_lite.errors import (
    InputError,
    require,
    require_bool,
    require_int,
    require_rate,
)
from t2t_lite.model import masks, rows
from t2t_lite.model.attention import (
    attention_weights,
    dot_product_attention,
    windowed_attention,
)
from t2t_lite.model.products import Matrix, multiply
from t2t_lite.tensor import Shape, Tensor

_recorded = contextvars.ContextVar("recorded", default=None)


@contextlib.contextmanager
def record_weights() -> Iterator[dict[str, Tensor]]:
    """Yields a dict that collects the weights of attention computed inside.

    It maps the path of each MultiHeadAttention to its float32 weights
    [B, H, L, M], before dropout.
    """
    weights = {}
    token = _recorded.set(weights)
    try:
        yield weights
    finally:
        _recorded.reset(token)


class KeysValues(NamedTuple):
    """What attention looks at, projected for each head."""

    k_BHMK: Tensor  # float
    v_BHMK: Tensor  # float, of depth d_v


@keras.saving.register_keras_serializable("t2t_lite")
class MultiHeadAttention(keras.layers.Layer):
    """Attends with `num_heads` heads at once, each with its own projection.

    MultiHead(Q, K, V) = Concat(head_1 .. head_h) W^O, where
    head_i = Attention(Q W_i^Q, K W_i^K, V W_i^V). The projections have no
    biases in the paper. The matrices of all heads lie side by side in one
    variable each: `query` [D, h d_k], `key` [D, h d_k], `value` [D, h d_v] and
    `output` [h d_v, D], drawn by Glorot's uniform rule.

    Args:
        num_heads: h.
        d_k: depth of a head's queries and keys.
        d_v: depth of a head's values; d_k when not given.
        dropout: the rate at which attention weights are dropped.
        window: (before, after), how many positions before and after itself a
            position attends to in self-attention; None for all.
        use_bias: whether queries and output have biases, `query_bias` [h d_k]
            and `output_bias` [D]. Others would change nothing: a key bias adds
            the same to all scores of a query, and a value bias, which weights
            that sum to 1 leave whole, is a part of the output bias.

    Source: section 3.2.2.
    """

    def __init__(
        self,
        num_heads: int,
        d_k: int,
        d_v: int | None = None,
        dropout: float = 0.0,
        window: tuple[int, int] | None = None,
        use_bias: bool = False,
        **kwargs: Any,
    ) -> None:
        d_v = d_k if d_v is None else d_v
        require_int(1, num_heads=num_heads, d_k=d_k, d_v=d_v)
        require_rate(dropout=dropout)
        require_bool(use_bias=use_bias)
        _check_window(window)
        super().__init__(**kwargs)
        self.supports_masking = True
        self.num_heads = num_heads
        self.d_k = d_k
        self.d_v = d_v
        self.dropout = dropout
        self.window = None if window is None else tuple(window)
        self.use_bias = use_bias
        self.query_bias = self.output_bias = None
        self.weights_dropout = keras.layers.Dropout(
            dropout, dtype=self.dtype_policy, name="weights_dropout"
        )

    def build(self, x_shape: Shape, memory_shape: Shape | None = None) -> None:
        d_model = x_shape[-1]
        d_memory = d_model if memory_shape is None else memory_shape[-1]
        keys, values = self.num_heads * self.d_k, self.num_heads * self.d_v
        self.query = self._add_matrix("query", d_model, keys)
        self.key = self._add_matrix("key", d_memory, keys)
        self.value = self._add_matrix("value", d_memory, values)
        self.output_matrix = self._add_matrix("output", values, d_model)
        if self.use_bias:
            self.query_bias = self._add_bias("query_bias", keys)
            self.output_bias = self._add_bias("output_bias", d_model)
        self.weights_dropout.build(None)

    def _add_matrix(self, name: str, *shape: int) -> keras.Variable:
        return self.add_weight(
            name=name, shape=shape, initializer="glorot_uniform"
        )

    def _add_bias(self, name: str, size: int) -> keras.Variable:
        return self.add_weight(name=name, shape=(size,), initializer="zeros")

    def queries(self, x: Tensor, matrix: Matrix | None = None) -> Tensor:
        """Returns q_BHLK for x [B, L, D].

        Args:
            x: float.
            matrix: `query`, maybe as an Int8Matrix; `query` when not given.
        """
        matrix = self.query if matrix is None else matrix
        q_NJ = self._multiply(rows.flatten(x), matrix)
        return self._biased(_split_heads(q_NJ, rows.shape(x), self.num_heads))

    def _biased(self, q_BHLK: Tensor) -> Tensor:
        """Returns queries with their bias, if they have one."""
        if self.query_bias is None:
            return q_BHLK
        shape = (self.num_heads, 1, self.d_k)
        bias_H1K = ops.reshape(ops.convert_to_tensor(self.query_bias), shape)
        return q_BHLK + ops.cast(bias_H1K, q_BHLK.dtype)

    def keys_and_values(self, memory: Tensor) -> KeysValues:
        """Returns the keys and values of memory [B, M, D]."""
        memory_ND, shape = rows.flatten(memory), rows.shape(memory)
        k_BHMK, v_BHMK = (
            _split_heads(
                self._multiply(memory_ND, matrix), shape, self.num_heads
            )
            for matrix in (self.key, self.value)
        )
        return KeysValues(k_BHMK, v_BHMK)

    def fused_qkv(self) -> Tensor:
        """Returns the matrix of `project_qkv`, [D, J = h (2 d_k + d_v)]."""
        matrices = ops.concatenate([self.query, self.key, self.value], 1)
        return ops.cast(matrices, self.compute_dtype)

    def project_qkv(
        self, x: Tensor, fused_qkv: Matrix
    ) -> tuple[Tensor, Tensor, Tensor]:
        """Returns `queries(x)` and `keys_and_values(x)` from one product.

        Args:
            x: float [B, L, D].
            fused_qkv: what `fused_qkv` returned, maybe as an Int8Matrix.

        Returns:
            (q_BHLK, k_BHLK, v_BHLK).
        """
        H, shape = self.num_heads, rows.shape(x)
        qkv_NJ = self._multiply(rows.flatten(x), fused_qkv)
        if self.d_k == self.d_v:  # One transposition is enough, too.
            q, k, v = ops.split(_split_heads(qkv_NJ, shape, 3 * H), 3, 1)
        else:
            ends = [H * self.d_k, 2 * H * self.d_k]
            parts = ops.split(qkv_NJ, ends, -1)
            q, k, v = (_split_heads(part, shape, H) for part in parts)
        return self._biased(q), k, v

    def attend(
        self,
        q_BHLK: Tensor,
        memory: KeysValues,
        may_attend: Tensor | None,
        *,
        training: bool = False,
        output: Matrix | None = None,
    ) -> Tensor:
        """Returns [B, L, D]: the heads' attention, merged.

        Args:
            q_BHLK: float.
            memory: keys and values of what is attended to.
            may_attend: bool, broadcasts to [B, H, L, M]; None for no limits.
            training: whether attention weights are dropped.
            output: that of `merge_heads`.
        """
        heads_BHLK = dot_product_attention(
            q_BHLK,
            *memory,
            may_attend=may_attend,
            dropout=self._dropout(training),
            record=self._record,
        )
        return self.merge_heads(heads_BHLK, output)

    def merge_heads(
        self, heads_BHLK: Tensor, output: Matrix | None = None
    ) -> Tensor:
        """Returns [B, L, D]: Concat(head_1 .. head_h) W^O.

        Args:
            heads_BHLK: float.
            output: W^O, maybe as an Int8Matrix; that of the layer when not
                given.
        """
        output = self.output_matrix if output is None else output
        heads_BLHK = ops.swapaxes(heads_BHLK, 1, 2)
        B, L = rows.shape(heads_BLHK)[:2]
        joined_NJ = ops.reshape(heads_BLHK, (-1, self.num_heads * self.d_v))
        output_ND = self._multiply(joined_NJ, output)
        if self.output_bias is not None:
            output_ND = output_ND + ops.cast(self.output_bias, output_ND.dtype)
        return ops.reshape(output_ND, (B, L, output_ND.shape[-1]))

    def call(
        self,
        x: Tensor,
        memory: Tensor | None = None,
        may_attend: Tensor | None = None,
        training: bool = False,
        mask: Tensor | None = None,
        x_mask: Tensor | None = None,
        memory_mask: Tensor | None = None,
    ) -> Tensor:
        """Returns attention from `x` to `memory`, or to itself.

        Args:
            x: float [B, L, D].
            memory: float [B, M, D]; x when not given.
            may_attend: bool with four axes or at most two, broadcasts to
                [B, H, L, M]; with a window, its shape is [B, 1, 1, M]. None
                for no limits but the masks'.
            training: whether attention weights are dropped.
            mask: bool [B, L], the mask of x that Keras passes on if x is the
                only tensor.
            x_mask: bool [B, L], the same if it is not.
            memory_mask: bool [B, M], the mask of the memory.

        Returns:
            float [B, L, D].

        Raises:
            InputError: x or memory is not floats, or not of that rank; memory
                has a different B; a mask is not bool, does not broadcast, or
                would have no effect.
        """
        _require_vectors(x=x, memory=x if memory is None else memory)
        _require_effect(memory, mask, memory_mask)
        if memory is None:
            memory_mask = x_mask if mask is None else mask
            q_BHLK, k_BHMK, v_BHMK = self.project_qkv(x, self.fused_qkv())
            keys_values = KeysValues(k_BHMK, v_BHMK)
        else:
            _require_rows(x, memory)
            q_BHLK, keys_values = self.queries(x), self.keys_and_values(memory)
        may_attend = masks.merge(may_attend, memory_mask)
        k_BHMK, _ = keys_values
        _require_mask(may_attend, (*q_BHLK.shape[:3], k_BHMK.shape[2]))
        has_window = self.window is not None and memory is None
        attend = self._attend_in_window if has_window else self.attend
        return attend(q_BHLK, keys_values, may_attend, training=training)

    def _attend_in_window(
        self,
        q_BHLK: Tensor,
        keys_values: KeysValues,
        may_attend: Tensor | None,
        *,
        training: bool,
    ) -> Tensor:
        if may_attend is not None and may_attend.shape[1:3] != (1, 1):
            raise ValueError(
                "may_attend must be the same for all heads and queries where "
                f"there is a window; received shape {may_attend.shape}"
            )
        before, after = self.window
        if _recorded.get() is not None:
            L = ops.shape(q_BHLK)[2]
            is_near = masks.sliding_window(L, before, after)
            if may_attend is not None:
                is_near = is_near & may_attend
            k_BHLK, _ = keys_values
            self._record(attention_weights(q_BHLK, k_BHLK, is_near))
        heads_BHLK = windowed_attention(
            q_BHLK,
            *keys_values,
            before=before,
            after=after,
            may_attend_B11L=may_attend,
            dropout=self._dropout(training),
        )
        return self.merge_heads(heads_BHLK)

    def _multiply(self, x_ND: Tensor, matrix: Matrix) -> Tensor:
        """Returns rows times a matrix, in the layer's precision.

        Keras casts variables only within `call`; cached decoding uses the
        parts of this layer outside of it.
        """
        return multiply(x_ND, matrix, self.compute_dtype)

    def _record(self, weights_BHLM: Tensor) -> None:
        weights = _recorded.get()
        if weights is not None:
            weights[self.path] = weights_BHLM

    def _dropout(self, training: bool) -> Callable[[Tensor], Tensor] | None:
        if not training or self.dropout == 0:
            return None
        return lambda weights: self.weights_dropout(weights, training=True)

    def compute_output_shape(
        self, x_shape: Shape, memory_shape: Shape | None = None
    ) -> Shape:
        return x_shape

    def get_config(self) -> dict[str, Any]:
        return super().get_config() | {
            "num_heads": self.num_heads,
            "d_k": self.d_k,
            "d_v": self.d_v,
            "dropout": self.dropout,
            "window": self.window,
            "use_bias": self.use_bias,
        }


def _require_effect(
    memory: Tensor | None, mask: Tensor | None, memory_mask: Tensor | None
) -> None:
    """Raises InputError if a mask would have no effect."""
    if memory is None and memory_mask is not None:
        raise InputError("memory_mask must be None where there is no memory")
    if memory is not None and mask is not None:
        raise InputError(
            "mask must be None where there is a memory: give memory_mask"
        )


def _require_vectors(**arguments: Tensor) -> None:
    """Raises InputError if an argument is not float [B, L, D]."""
    rows.require_floats(**arguments)
    for name, vectors in arguments.items():
        shape = list(vectors.shape)
        require(f"{name} must be [B, L, D]", len(shape) == 3, shape=shape)


def _require_rows(x: Tensor, memory: Tensor) -> None:
    """Raises InputError if one memory would be used for several rows."""
    B, rows_of_memory = x.shape[0], memory.shape[0]
    if None not in (B, rows_of_memory):
        rule = "memory and x must have the same number of rows"
        require(rule, rows_of_memory == B, x=B, memory=rows_of_memory)


def _require_mask(may_attend: Tensor | None, shape_BHLM: Shape) -> None:
    """Raises InputError if a mask does not fit the logits of attention."""
    if may_attend is None or getattr(may_attend.shape, "rank", 0) is None:
        return
    received = list(may_attend.shape)
    pairs = zip(received[::-1], shape_BHLM[::-1], strict=False)
    fits = len(received) <= 4 and all(
        size in (1, None) or expected in (size, None)
        for size, expected in pairs
    )
    rule = f"may_attend must broadcast to [B, H, L, M] = {list(shape_BHLM)}"
    require(rule, fits, shape=received)


def _check_window(window: Any) -> None:
    is_pair = window is None or (
        isinstance(window, (list, tuple)) and len(window) == 2
    )
    require("window must be (before, after) or None", is_pair, window=window)
    if window is not None:
        before, after = window
        require_int(0, before=before, after=after)


def _split_heads(joined_NJ: Tensor, shape: Shape, num_heads: int) -> Tensor:
    """Returns [B, H, L, K] from rows of length J = H K, for [B, L, ...].

    Args:
        joined_NJ: the heads of each vector, side by side.
        shape: `rows.shape` of the vectors.
        num_heads: H.
    """
    B, L, _ = shape
    depth = joined_NJ.shape[-1] // num_heads
    heads_BLHK = ops.reshape(joined_NJ, (B, L, num_heads, depth))
    return ops.swapaxes(heads_BLHK, 1, 2)
