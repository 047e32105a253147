"""Attention: scaled dot products, and several heads of them."""

import contextlib
import contextvars

import keras
from keras import ops

from t2t_lite import masks

_NEVER = -1e9  # A logit so low that its weight is exactly 0 in float32.


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


def attention_weights(q_BLHK, k_BMHK, may_attend=None):
    """Returns softmax(Q K^T / sqrt(d_k)) for each head, float32 [B, H, L, M].

    Args: those of `dot_product_attention`.
    """
    d_k = q_BLHK.shape[-1]
    logits_BHLM = ops.einsum("blhk,bmhk->bhlm", q_BLHK * d_k**-0.5, k_BMHK)
    logits_BHLM = ops.cast(logits_BHLM, "float32")
    if may_attend is not None:
        logits_BHLM = ops.where(may_attend, logits_BHLM, _NEVER)
    if logits_BHLM.shape[-1] == 1:  # Keras warns of a softmax over one.
        return ops.ones_like(logits_BHLM)
    return ops.softmax(logits_BHLM)


def dot_product_attention(
    q_BLHK, k_BMHK, v_BMHK, may_attend=None, dropout=None, record=None
):
    """Returns the values mixed by softmax(Q K^T / sqrt(d_k)) V for each head.

    Args:
        q_BLHK: float queries.
        k_BMHK: float keys, of the queries' depth d_k.
        v_BMHK: float values, of depth d_v.
        may_attend: bool, broadcasts to [B, H, L, M]; or None for no limits. A
            query that may attend to nothing gets the mean of all values.
        dropout: a function of the weights [B, H, L, M], or None.
        record: a function that is shown the weights before that, or None.

    Returns:
        float [B, L, H, d_v], of the values' dtype. The softmax is computed in
        float32 whatever that is.

    Source: section 3.2.1, Eq. 1.
    """
    weights_BHLM = attention_weights(q_BLHK, k_BMHK, may_attend)
    if record is not None:
        record(weights_BHLM)
    weights_BHLM = ops.cast(weights_BHLM, v_BMHK.dtype)
    if dropout is not None:
        weights_BHLM = dropout(weights_BHLM)
    return ops.einsum("bhlm,bmhk->blhk", weights_BHLM, v_BMHK)


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

    Source: section 3.2.2.
    """

    def __init__(self, num_heads, d_k, d_v=None, dropout=0.0, **kwargs):
        super().__init__(**kwargs)
        self.supports_masking = True
        self.num_heads = num_heads
        self.d_k = d_k
        self.d_v = d_k if d_v is None else d_v
        self.dropout = dropout
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

    def _matrix(self, name, rows, columns):
        return self.add_weight(
            name=name, shape=(rows, columns), initializer="glorot_uniform"
        )

    def queries(self, x):
        """Returns q_BLHK for x [B, L, D]."""
        return self._split(self._times(x, self.query))

    def keys_and_values(self, memory):
        """Returns (k_BMHK, v_BMHK) for memory [B, M, D]."""
        key = self._times(memory, self.key)
        value = self._times(memory, self.value)
        return self._split(key), self._split(value)

    def attend(self, q_BLHK, k_BMHK, v_BMHK, may_attend, training=False):
        """Returns [B, L, D]: the heads' attention, joined by W^O."""
        heads_BLHK = dot_product_attention(
            q_BLHK,
            k_BMHK,
            v_BMHK,
            may_attend,
            self._dropout(training),
            self._record,
        )
        return self.project(heads_BLHK)

    def project(self, heads_BLHK):
        """Returns [B, L, D]: Concat(head_1 .. head_h) W^O."""
        B, L = ops.shape(heads_BLHK)[:2]
        joined = ops.reshape(heads_BLHK, (B, L, self.num_heads * self.d_v))
        return self._times(joined, self.output_matrix)

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
            may_attend: bool, broadcasts to [B, H, L, M]; None for no limits
                but those of the masks.
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
        may_attend = masks.within(may_attend, memory_mask)
        q_BLHK = self.queries(x)
        k_BMHK, v_BMHK = self.keys_and_values(x if memory is None else memory)
        return self.attend(q_BLHK, k_BMHK, v_BMHK, may_attend, training)

    def _times(self, x, matrix):
        """Returns x times a matrix, in the layer's precision.

        Keras casts variables within `call` alone; cached decoding uses the
        parts of this layer outside of it.
        """
        dtype = self.compute_dtype
        return ops.matmul(ops.cast(x, dtype), ops.cast(matrix, dtype))

    def _split(self, joined):
        B, L = ops.shape(joined)[:2]
        depth = joined.shape[-1] // self.num_heads
        return ops.reshape(joined, (B, L, self.num_heads, depth))

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
        }
