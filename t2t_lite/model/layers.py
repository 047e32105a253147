"""The layers that the encoder and the decoder are stacks of."""

import keras
from keras import ops

from t2t_lite.model import masks, rows
from t2t_lite.model.attention import MultiHeadAttention

_EPSILON = 1e-6  # Of layer normalization; the paper does not say.


@keras.saving.register_keras_serializable("t2t_lite")
class FeedForward(keras.layers.Layer):
    """FFN(x) = max(0, x W_1 + b_1) W_2 + b_2, at each position alike.

    Args:
        d_ff: int, F, the width of the hidden layer.

    Source: section 3.3, Eq. 2.
    """

    def __init__(self, d_ff, **kwargs):
        super().__init__(**kwargs)
        self.supports_masking = True
        self.d_ff = d_ff

    def build(self, x_shape):
        dense, policy = keras.layers.Dense, self.dtype_policy
        self.hidden = dense(self.d_ff, "relu", dtype=policy, name="hidden")
        self.output_layer = dense(x_shape[-1], dtype=policy, name="output")
        self.hidden.build(x_shape)
        self.output_layer.build((*x_shape[:-1], self.d_ff))

    def call(self, x):
        """Returns float [B, L, D] for x [B, L, D]."""
        hidden_NF = self.hidden(rows.flatten(x))
        return rows.restore(self.output_layer(hidden_NF), x)

    def compute_output_shape(self, x_shape):
        return x_shape

    def get_config(self):
        return super().get_config() | {"d_ff": self.d_ff}


class _Block(keras.layers.Layer):
    """What encoder and decoder layers share: their parts, and Add & Norm."""

    def __init__(
        self,
        d_ff,
        num_heads,
        d_k,
        d_v=None,
        dropout=0.1,
        attention_dropout=0.0,
        attention_window=0,
        **kwargs,
    ):
        super().__init__(**kwargs)
        self.supports_masking = True
        self.d_ff, self.num_heads, self.d_k, self.d_v = (
            d_ff,
            num_heads,
            d_k,
            d_v,
        )
        self.dropout, self.attention_dropout = dropout, attention_dropout
        self.attention_window = attention_window
        self.norms, self.dropouts = {}, {}

    def _attention(self, name, x_shape, memory_shape=None, window=None):
        layer = MultiHeadAttention(
            self.num_heads,
            self.d_k,
            self.d_v,
            self.attention_dropout,
            window,
            dtype=self.dtype_policy,
            name=name,
        )
        layer.build(x_shape, memory_shape)
        self._prepare_add_and_norm(name, x_shape)
        return layer

    def _feed_forward(self, x_shape):
        name = "feed_forward"
        layer = FeedForward(self.d_ff, dtype=self.dtype_policy, name=name)
        layer.build(x_shape)
        self._prepare_add_and_norm(name, x_shape)
        return layer

    def _prepare_add_and_norm(self, name, x_shape):
        self.norms[name] = keras.layers.LayerNormalization(
            epsilon=_EPSILON, dtype=self.dtype_policy, name=f"{name}_norm"
        )
        self.norms[name].build(x_shape)
        self.dropouts[name] = keras.layers.Dropout(
            self.dropout, dtype=self.dtype_policy, name=f"{name}_dropout"
        )
        self.dropouts[name].build(x_shape)

    def _add_and_norm(self, x, sublayer, output, training=False):
        """Returns LayerNorm(x + Dropout(output of the sublayer)).

        Source: sections 3.1 and 5.4.
        """
        dropped = self.dropouts[sublayer.name](output, training=training)
        return self.norms[sublayer.name](x + dropped)

    def compute_output_shape(self, x_shape, *_, **__):
        return x_shape

    def get_config(self):
        return super().get_config() | {
            "d_ff": self.d_ff,
            "num_heads": self.num_heads,
            "d_k": self.d_k,
            "d_v": self.d_v,
            "dropout": self.dropout,
            "attention_dropout": self.attention_dropout,
            "attention_window": self.attention_window,
        }


@keras.saving.register_keras_serializable("t2t_lite")
class EncoderLayer(_Block):
    """Self-attention, then feed-forward, each with Add & Norm after it.

    Args:
        d_ff: int, F.
        num_heads: int, h.
        d_k: int, depth of queries and keys.
        d_v: int, depth of values; d_k when not given.
        dropout: float, the rate on each sub-layer's output.
        attention_dropout: float, the rate on attention weights.
        attention_window: int, r, odd: to how many positions around each one
            self-attention is restricted; 0 for all.

    Source: section 3.1, "Encoder".
    """

    def build(self, x_shape):
        reach = self.attention_window // 2
        window = (reach, reach) if self.attention_window else None
        self.self_attention = self._attention(
            "self_attention", x_shape, window=window
        )
        self.feed_forward = self._feed_forward(x_shape)

    def call(self, x, may_attend=None, training=False, mask=None, x_mask=None):
        """Returns float [B, S, D] for x [B, S, D].

        Args:
            x: float [B, S, D].
            may_attend: bool, broadcasts to [B, H, S, S]; None for no limits
                but that of the mask.
            training: bool, whether to drop.
            mask: bool [B, S], the mask of x that Keras hands on where x is
                the only tensor.
            x_mask: bool [B, S], the same where it is not.
        """
        may_attend = masks.within(may_attend, x_mask if mask is None else mask)
        attended = self.self_attention(
            x, may_attend=may_attend, training=training
        )
        x = self._add_and_norm(x, self.self_attention, attended, training)
        return self._add_and_norm(
            x, self.feed_forward, self.feed_forward(x), training
        )


@keras.saving.register_keras_serializable("t2t_lite")
class DecoderLayer(_Block):
    """Self-attention, attention to the memory, feed-forward; Add & Norm each.

    Args: those of EncoderLayer.

    Source: section 3.1, "Decoder".
    """

    def build(self, x_shape, memory_shape=None):
        reach = self.attention_window // 2
        window = (reach, 0) if self.attention_window else None
        self.self_attention = self._attention(
            "self_attention", x_shape, window=window
        )
        self.memory_attention = self._attention(
            "memory_attention", x_shape, memory_shape
        )
        self.feed_forward = self._feed_forward(x_shape)

    def call(
        self,
        x,
        memory,
        may_attend=None,
        may_attend_memory=None,
        training=False,
        memory_mask=None,
    ):
        """Returns float [B, T, D] for x [B, T, D].

        Args:
            x: float [B, T, D].
            memory: float [B, S, D], the encoder's output.
            may_attend: bool, broadcasts to [B, H, T, T]; None for no limits
                but that of a window, which holds nothing ahead.
            may_attend_memory: bool, broadcasts to [B, H, T, S]; None for no
                limits but that of the mask.
            training: bool, whether to drop.
            memory_mask: bool [B, S], the mask of the memory that Keras hands
                on.
        """
        may_attend_memory = masks.within(may_attend_memory, memory_mask)
        attended = self.self_attention(
            x, may_attend=may_attend, training=training
        )
        x = self._add_and_norm(x, self.self_attention, attended, training)
        attended = self.memory_attention(
            x, memory, may_attend=may_attend_memory, training=training
        )
        x = self._add_and_norm(x, self.memory_attention, attended, training)
        return self._add_and_norm(
            x, self.feed_forward, self.feed_forward(x), training
        )

    def step(self, x_BWD, projection, past, memory):
        """Returns one position's output, and the cache with it.

        The W hypotheses of a sentence share one cache: at each position it
        holds the keys and values of all W, and each hypothesis attends to
        those that are its ancestors. So reordering hypotheses moves nothing.

        Args:
            x_BWD: float, the vector of the newest token of each hypothesis.
            projection: the `fused_qkv` of self-attention.
            past: (cache, write, is_ancestor, visible), the cache being (keys,
                values), each float [B, H, positions * W, K]; `write` a function
                ([B, H, positions * W, K], new [B, H, W, K]) to the first with
                the second at the position of x_BWD; `is_ancestor` bool [B, 1,
                W, M * W], what may be attended to of the visible positions;
                `visible` (first, M) of these, None for all there are.
            memory: (keys, values, may_attend): float [B, H, S, K] of each, and
                bool [B, 1, 1, S].

        Returns:
            (float [B, W, D], cache).
        """
        attention = self.self_attention
        cache, write, is_ancestor_B1WM, visible = past
        q_BHWK, *new_parts = attention.project_qkv(x_BWD, projection)
        cache = tuple(map(write, cache, new_parts))
        keys, values = (_seen(part, visible, x_BWD) for part in cache)
        attended = attention.attend(q_BHWK, keys, values, is_ancestor_B1WM)
        x_BWD = self._add_and_norm(x_BWD, attention, attended)
        attention = self.memory_attention
        attended = attention.attend(attention.queries(x_BWD), *memory)
        x_BWD = self._add_and_norm(x_BWD, attention, attended)
        output = self.feed_forward(x_BWD)
        return self._add_and_norm(x_BWD, self.feed_forward, output), cache


def _seen(cache_BHPK, visible, x_BWD):
    """Returns [B, H, M W, K]: what W hypotheses have at M positions."""
    if visible is None:
        return cache_BHPK
    first, M = visible
    W, (B, H, _, K) = ops.shape(x_BWD)[1], ops.shape(cache_BHPK)
    return ops.slice(cache_BHPK, (0, 0, first * W, 0), (B, H, M * W, K))
