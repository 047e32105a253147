"""Attention: scaled dot products, and several heads of them."""

import contextlib
import contextvars

import keras
from keras import ops

from t2t_lite.model import masks, rows, windows
from t2t_lite.tensor import NEG_INF

_recorded = contextvars.ContextVar("recorded", default=None)


@contextlib.contextmanager
def recorded_weights():
    """Gives a dict that fills with the weights of attention computed inside.

    Its items are the path of each MultiHeadAttention and its float32 weights
    [B, H, L, M], before dropout.
    """
    weights = {}
    token = _recorded.set(weights)
    try:
        yield weights
    finally:
        _recorded.reset(token)


def attention_weights(q_BHLK, k_BHMK, may_attend=None):
    """Returns softmax(Q K^T / sqrt(d_k)) for each head, float32 [B, H, L, M].

    Args: those of `dot_product_attention`.
    """
    d_k = q_BHLK.shape[-1]
    k_BHKM = ops.swapaxes(k_BHMK, -1, -2)
    logits_BHLM = ops.cast(ops.matmul(q_BHLK * d_k**-0.5, k_BHKM), "float32")
    if may_attend is not None:
        logits_BHLM = ops.where(may_attend, logits_BHLM, NEG_INF)
    if logits_BHLM.shape[-1] == 1:  # Keras warns of a softmax over one.
        return ops.ones_like(logits_BHLM)
    return ops.softmax(logits_BHLM)


def dot_product_attention(
    q_BHLK, k_BHMK, v_BHMK, may_attend=None, dropout=None, record=None
):
    """Returns the values mixed by softmax(Q K^T / sqrt(d_k)) V for each head.

    Args:
        q_BHLK: float queries. More axes may stand before the last two.
        k_BHMK: float keys, of the queries' depth d_k.
        v_BHMK: float values, of depth d_v.
        may_attend: bool, broadcasts to [B, H, L, M]; or None for no limits. A
            query that may attend to nothing gets the mean of all values.
        dropout: a function of the weights [B, H, L, M], or None.
        record: a function that is shown the weights before that, or None.

    Returns:
        float [B, H, L, d_v], of the values' dtype. The softmax is computed in
        float32 whatever that is.

    Source: section 3.2.1, Eq. 1.
    """
    weights_BHLM = attention_weights(q_BHLK, k_BHMK, may_attend)
    if record is not None:
        record(weights_BHLM)
    weights_BHLM = ops.cast(weights_BHLM, v_BHMK.dtype)
    if dropout is not None:
        weights_BHLM = dropout(weights_BHLM)
    return ops.matmul(weights_BHLM, v_BHMK)


def windowed_attention(
    q_BHLK, k_BHLK, v_BHLK, before, after, may_attend_B11L=None, dropout=None
):
    """Returns what `dot_product_attention` does where attention is restricted.

    Position i attends to positions i - before to i + after. Queries are taken
    in blocks, each against the few blocks of keys that it reaches: O(L r d)
    time and memory for r = before + 1 + after, not O(L^2 d).

    Args:
        q_BHLK: float queries.
        k_BHLK: float keys.
        v_BHLK: float values, of depth d_v.
        before: int, how far back a position attends.
        after: int, how far ahead.
        may_attend_B11L: bool, which keys may be attended to; None for all.
        dropout: a function of the weights, or None.

    Returns:
        float [B, H, L, d_v]. A query that may attend to nothing within its
        window gets no mean of all values but of some.

    Source: section 4, "restricted" self-attention; Table 1.
    """
    B, _, L, _ = ops.shape(q_BHLK)
    cut = windows.blocks(before, after)
    C, M = cut.size, cut.num_keys
    num_blocks = (L + C - 1) // C  # N
    is_key_B1L = (
        ops.ones((B, 1, L), "bool")
        if may_attend_B11L is None
        else ops.broadcast_to(may_attend_B11L[:, 0], (B, 1, L))
    )
    k_BHNMK, v_BHNMK, is_key_B1NM = (
        _with_neighbours(_blocks(x, num_blocks, C), cut.before, cut.after)
        for x in (k_BHLK, v_BHLK, ops.cast(is_key_B1L, "int32"))
    )
    key = ops.arange(M) - C * cut.before
    distance_CM = key[None] - ops.arange(C)[:, None]
    is_near_CM = (distance_CM >= -before) & (distance_CM <= after)
    heads_BHNCK = dot_product_attention(
        _blocks(q_BHLK, num_blocks, C),
        k_BHNMK,
        v_BHNMK,
        is_near_CM & (is_key_B1NM[:, :, :, None] > 0),
        dropout,
    )
    H, K = heads_BHNCK.shape[1], heads_BHNCK.shape[-1]
    return ops.reshape(heads_BHNCK, (B, H, num_blocks * C, K))[:, :, :L]


def _blocks(x_BHL, num_blocks, C):
    """Returns [B, H, N, C, ...]: N blocks of x, the last filled with 0."""
    B, H, L = ops.shape(x_BHL)[:3]
    rest = x_BHL.shape[3:]
    missing = num_blocks * C - L
    widths = ((0, 0), (0, 0), (0, missing), *((0, 0) for _ in rest))
    return ops.reshape(ops.pad(x_BHL, widths), (B, H, num_blocks, C, *rest))


def _with_neighbours(x_BHNC, has_previous, has_next):
    """Returns [B, H, N, M, ...]: blocks between their neighbours, 0 outside."""
    nothing = ops.zeros_like(x_BHNC[:, :, :1])
    parts = [x_BHNC]
    if has_previous:
        parts = [ops.concatenate([nothing, x_BHNC[:, :, :-1]], 2), *parts]
    if has_next:
        parts = [*parts, ops.concatenate([x_BHNC[:, :, 1:], nothing], 2)]
    return ops.concatenate(parts, 3)


@keras.saving.register_keras_serializable("t2t_lite")
class MultiHeadAttention(keras.layers.Layer):
    """Attends with `num_heads` heads at once, each in its own projection.

    MultiHead(Q, K, V) = Concat(head_1 .. head_h) W^O, where
    head_i = Attention(Q W_i^Q, K W_i^K, V W_i^V). The projections have no
    biases. The matrices of all heads lie side by side in one variable each:
    `query` [D, h d_k], `key` [D, h d_k], `value` [D, h d_v] and `output`
    [h d_v, D], drawn by Glorot's uniform rule.

    Args:
        num_heads: int, h.
        d_k: int, depth of a head's queries and keys.
        d_v: int, depth of a head's values; d_k when not given.
        dropout: float, the rate at which attention weights are dropped.
        window: (before, after), how many positions before and after itself a
            position attends to in self-attention; None for all.

    Source: section 3.2.2.
    """

    def __init__(
        self, num_heads, d_k, d_v=None, dropout=0.0, window=None, **kwargs
    ):
        super().__init__(**kwargs)
        self.supports_masking = True
        self.num_heads = num_heads
        self.d_k = d_k
        self.d_v = d_k if d_v is None else d_v
        self.dropout = dropout
        self.window = window and tuple(window)
        self.weights_dropout = keras.layers.Dropout(
            dropout, dtype=self.dtype_policy, name="weights_dropout"
        )

    def build(self, x_shape, memory_shape=None):
        d_model = x_shape[-1]
        d_memory = d_model if memory_shape is None else memory_shape[-1]
        keys, values = self.num_heads * self.d_k, self.num_heads * self.d_v
        self.query = self._matrix("query", d_model, keys)
        self.key = self._matrix("key", d_memory, keys)
        self.value = self._matrix("value", d_memory, values)
        self.output_matrix = self._matrix("output", values, d_model)
        self.weights_dropout.build(None)

    def _matrix(self, name, *shape):
        return self.add_weight(
            name=name, shape=shape, initializer="glorot_uniform"
        )

    def queries(self, x):
        """Returns q_BHLK for x [B, L, D]."""
        q_NJ = self._times(rows.flatten(x), self.query)
        return _split(q_NJ, rows.shape(x), self.num_heads)

    def keys_and_values(self, memory):
        """Returns (k_BHMK, v_BHMK) for memory [B, M, D]."""
        memory_ND, sizes = rows.flatten(memory), rows.shape(memory)
        return tuple(
            _split(self._times(memory_ND, matrix), sizes, self.num_heads)
            for matrix in (self.key, self.value)
        )

    def fused_qkv(self):
        """Returns what `project_qkv` multiplies by, [D, h (2 d_k + d_v)]."""
        matrices = ops.concatenate([self.query, self.key, self.value], 1)
        return ops.cast(matrices, self.compute_dtype)

    def project_qkv(self, x, projection):
        """Returns `queries(x)` and `keys_and_values(x)` from one product.

        Args:
            x: float [B, L, D].
            projection: what `fused_qkv` returned.

        Returns:
            (q_BHLK, k_BHLK, v_BHLK).
        """
        H = self.num_heads
        joined_NJ = self._times(rows.flatten(x), projection)
        sizes = rows.shape(x)
        if self.d_k == self.d_v:  # One transposition is enough, too.
            return ops.split(_split(joined_NJ, sizes, 3 * H), 3, axis=1)
        ends = [H * self.d_k, 2 * H * self.d_k]
        parts = ops.split(joined_NJ, ends, -1)
        return [_split(part, sizes, H) for part in parts]

    def attend(self, q_BHLK, k_BHMK, v_BHMK, may_attend, training=False):
        """Returns [B, L, D]: the heads' attention, joined by W^O."""
        heads_BHLK = dot_product_attention(
            q_BHLK,
            k_BHMK,
            v_BHMK,
            may_attend,
            self._dropout(training),
            self._record,
        )
        return self.merge_heads(heads_BHLK)

    def merge_heads(self, heads_BHLK):
        """Returns [B, L, D]: Concat(head_1 .. head_h) W^O."""
        heads_BLHK = ops.swapaxes(heads_BHLK, 1, 2)
        B, L = rows.shape(heads_BLHK)[:2]
        joined_NJ = ops.reshape(heads_BLHK, (-1, self.num_heads * self.d_v))
        output_ND = self._times(joined_NJ, self.output_matrix)
        return ops.reshape(output_ND, (B, L, output_ND.shape[-1]))

    def call(
        self,
        x,
        memory=None,
        may_attend=None,
        training=False,
        mask=None,
        x_mask=None,
        memory_mask=None,
    ):
        """Returns attention from `x` to `memory`, or to itself.

        Args:
            x: float [B, L, D].
            memory: float [B, M, D]; x when not given.
            may_attend: bool, broadcasts to [B, H, L, M], with a window of
                shape [B, 1, 1, M]; None for no limits but those of the masks.
            training: bool, whether attention weights are dropped.
            mask: bool [B, L], the mask of x that Keras hands on where x is
                the only tensor.
            x_mask: bool [B, L], the same where it is not.
            memory_mask: bool [B, M], the mask of the memory.

        Returns:
            float [B, L, D].
        """
        if memory is None:
            memory_mask = x_mask if mask is None else mask
            heads = self.project_qkv(x, self.fused_qkv())
        else:
            heads = (self.queries(x), *self.keys_and_values(memory))
        may_attend = masks.within(may_attend, memory_mask)
        q_BHLK, k_BHMK, v_BHMK = heads
        if self.window is None or memory is not None:
            return self.attend(q_BHLK, k_BHMK, v_BHMK, may_attend, training)
        return self._attend_nearby(q_BHLK, k_BHMK, v_BHMK, may_attend, training)

    def _attend_nearby(self, q_BHLK, k_BHLK, v_BHLK, may_attend, training):
        if may_attend is not None and may_attend.shape[1:3] != (1, 1):
            raise ValueError(
                "may_attend must be the same for all heads and queries where "
                f"there is a window; received shape {may_attend.shape}"
            )
        if _recorded.get() is not None:
            is_near = masks.nearby(ops.shape(q_BHLK)[2], *self.window)
            if may_attend is not None:
                is_near = is_near & may_attend
            self._record(attention_weights(q_BHLK, k_BHLK, is_near))
        heads_BHLK = windowed_attention(
            q_BHLK,
            k_BHLK,
            v_BHLK,
            *self.window,
            may_attend,
            self._dropout(training),
        )
        return self.merge_heads(heads_BHLK)

    def _times(self, x_ND, matrix):
        """Returns rows times a matrix, in the layer's precision.

        Keras casts variables within `call` alone; cached decoding uses the
        parts of this layer outside of it.
        """
        dtype = self.compute_dtype
        return ops.matmul(ops.cast(x_ND, dtype), ops.cast(matrix, dtype))

    def _record(self, weights_BHLM):
        weights = _recorded.get()
        if weights is not None:
            weights[self.path] = weights_BHLM

    def _dropout(self, training):
        if not training or self.dropout == 0:
            return None
        return lambda weights: self.weights_dropout(weights, training=True)

    def compute_output_shape(self, x_shape, memory_shape=None):
        return x_shape

    def get_config(self):
        return super().get_config() | {
            "num_heads": self.num_heads,
            "d_k": self.d_k,
            "d_v": self.d_v,
            "dropout": self.dropout,
            "window": self.window,
        }


def _split(joined_NJ, sizes, num_heads):
    """Returns [B, H, L, K] of rows J = H K long, of vectors [B, L, ...].

    Args:
        sizes: `rows.shape` of the vectors.
    """
    B, L, _ = sizes
    depth = joined_NJ.shape[-1] // num_heads
    heads_BLHK = ops.reshape(joined_NJ, (B, L, num_heads, depth))
    return ops.swapaxes(heads_BLHK, 1, 2)
