"""The training loss: cross-entropy with label smoothing, over tokens."""

from typing import Any

import keras
from keras import ops

from t2t_lite.errors import require, require_rate
from t2t_lite.model import rows
from t2t_lite.model.ids import require_ids_below
from t2t_lite.tensor import Tensor
from t2t_lite.token_ids import PAD

# How many logits are computed at a time, 80 MB of them. With fewer,
# `projected_cross_entropy` would add to the embedding's gradient more often,
# which takes time; more would take memory and save no time.
CHUNK_LOGITS = 20 * 2**20
_TINY = 1e-9  # Added to a weight, so that its logarithm is finite.


def cross_entropy(
    logits_BTV: Tensor, target_ids_BT: Tensor, label_smoothing: float = 0.0
) -> tuple[Tensor, Tensor]:
    """Returns the summed loss of the target tokens, and how many there are.

    The target distribution of a token is 1 - e + e / V on the token and e / V
    on each other id. Sum and count are kept apart so that they can be added up
    over replicas and micro-batches before the one division: a mean of means
    would weigh tokens by the batch they happen to be in.

    Args:
        logits_BTV: float [B, T, V]; the loss is computed in float32.
        target_ids_BT: int [B, T], 0 for padding, which counts for nothing.
        label_smoothing: e in [0, 1).

    Returns:
        (float32 scalar in nats, float32 scalar number of tokens).

    Source: section 5.4; Szegedy et al. 2015, section 7, for the e / V.
    """
    loss_BT, is_token_BT = token_losses(
        logits_BTV, target_ids_BT, label_smoothing
    )
    return ops.sum(loss_BT), ops.sum(is_token_BT)


def token_losses(
    logits_BTV: Tensor, target_ids_BT: Tensor, label_smoothing: float = 0.0
) -> tuple[Tensor, Tensor]:
    """Returns the loss of each token, and 1 or 0: whether it is a token.

    The arguments are those of `cross_entropy`.

    Returns:
        (float32 [B, T] in nats, 0 for padding, NaN for what is not an id;
        float32 [B, T]).

    Raises:
        InputError: shapes do not fit; or, outside of graphs, some targets are
            not below V.
    """
    logits_BTV = ops.convert_to_tensor(logits_BTV)
    target_ids_BT = ops.convert_to_tensor(target_ids_BT)
    _require_logits_for(target_ids_BT, logits_BTV)
    V = logits_BTV.shape[-1]
    require_ids_below(V, target_ids=target_ids_BT)
    target_ids_BT = ops.cast(target_ids_BT, "int32")
    logits_BTV = ops.cast(logits_BTV, "float32")
    is_token_BT = ops.cast(ops.not_equal(target_ids_BT, PAD), "float32")
    is_id_BT = (target_ids_BT >= 0) & (target_ids_BT < V)
    target_ids_BT = ops.where(is_id_BT, target_ids_BT, PAD)
    if label_smoothing:
        target_BTV = ops.one_hot(target_ids_BT, V, dtype="float32")
        target_BTV = (1 - label_smoothing) * target_BTV + label_smoothing / V
        loss_BT = ops.categorical_crossentropy(
            target_BTV, logits_BTV, from_logits=True
        )
    else:
        loss_BT = ops.sparse_categorical_crossentropy(
            target_ids_BT, logits_BTV, from_logits=True
        )
    loss_BT = ops.where(is_id_BT, loss_BT * is_token_BT, float("nan"))
    return loss_BT, is_token_BT


def _require_logits_for(target_ids: Tensor, logits: Tensor) -> None:
    """Raises InputError if logits are not one vector for each target."""
    if None in (getattr(t.shape, "rank", 0) for t in (logits, target_ids)):
        return
    sizes, expected = tuple(logits.shape)[:-1], tuple(target_ids.shape)
    fits = len(sizes) == len(expected) and all(
        None in pair or len({*pair}) == 1
        for pair in zip(sizes, expected, strict=True)
    )
    require(
        "logits must be [B, T, V] for target_ids [B, T]",
        fits,
        logits=list(logits.shape),
        target_ids=list(expected),
    )


def projected_cross_entropy(
    x_BTD: Tensor,
    embedding_VD: Tensor,
    target_ids_BT: Tensor,
    label_smoothing: float = 0.0,
    loss_scale: float | Tensor | None = None,
    chunk_logits: int | None = None,
) -> tuple[Tensor, Tensor]:
    """Returns `cross_entropy` of the logits x E^T, in little memory.

    The logits are computed for one chunk of tokens after another, and with them
    the chunk's part of both gradients: no more than a chunk of logits exists at
    a time, none is computed twice, and chunks of nothing but padding are left
    out. If no gradient is needed, `cross_entropy` does less work.

    Args:
        x_BTD: float [B, T, D], the decoder's output. The products are computed
            in its dtype, softmax and loss in float32.
        embedding_VD: float32 [V, D], E.
        target_ids_BT: int [B, T], 0 for padding, which counts for nothing.
        label_smoothing: e in [0, 1).
        loss_scale: float or scalar tensor, what the loss will be multiplied by;
            None for 1, which saves a pass over the logits. It changes no
            result: the gradients are formed at that scale, so that small ones
            are not lost in float16.
        chunk_logits: int, how many logits are computed at a time, at least V;
            CHUNK_LOGITS if not given. It changes results only by rounding.

    Returns:
        (float32 scalar in nats, float32 scalar number of tokens).

    Source: sections 3.4 and 5.4.
    """
    V, D = embedding_VD.shape
    require_ids_below(V, target_ids=target_ids_BT)
    ids_N = ops.cast(ops.reshape(target_ids_BT, (-1,)), "int32")
    N = ops.shape(ids_N)[0]
    is_token_N = ops.not_equal(ids_N, PAD)
    num_tokens = ops.sum(ops.cast(is_token_N, "int32"))
    tokens_first_N = ops.argsort(ops.logical_not(is_token_N))
    chunk_size, num_chunks = _chunks(N, largest_chunk(V, chunk_logits))
    # As many positions as the chunks have. Those that are added are PAD, so any
    # vector of x may stand there.
    padding = ((0, chunk_size * num_chunks - N),)
    target_ids_P = ops.pad(
        rows.take(ids_N, tokens_first_N), padding, constant_values=PAD
    )
    position_P = ops.pad(tokens_first_N, padding)

    @ops.custom_gradient
    def summed_loss(x_PD, embedding_VD):
        # In eager mode, TensorFlow's tape would keep every chunk.
        loss, x_gradient, embedding_gradient = _loss_and_gradients(
            ops.stop_gradient(x_PD),
            ops.stop_gradient(embedding_VD),
            target_ids_P,
            num_tokens=num_tokens,
            chunk_size=chunk_size,
            label_smoothing=label_smoothing,
            loss_scale=loss_scale,
        )

        def gradient(*args, upstream=None):
            if args:  # Backends differ in how they pass it on.
                (upstream,) = args
            factor = upstream if loss_scale is None else upstream / loss_scale
            return tuple(
                each * ops.cast(factor, each.dtype)
                for each in (x_gradient, embedding_gradient)
            )

        return loss, gradient

    loss = summed_loss(
        rows.take(ops.reshape(x_BTD, (-1, D)), position_P),
        ops.cast(embedding_VD, "float32"),  # For a variable, its value.
    )
    return loss, ops.cast(num_tokens, "float32")


def alignment_loss(weights_BTS: Tensor, is_linked_BTS: Tensor) -> Tensor:
    """Returns the summed loss of a head's attention to linked tokens.

    A target token that is linked to n source tokens should attend to each of
    them with weight 1 / n: its loss is the cross-entropy of its weights with
    that. Tokens without links count for nothing.

    Args:
        weights_BTS: float32, of the position at which each target token is to
            be aligned.
        is_linked_BTS: of any dtype, 1 or 0.

    Returns:
        float32 scalar in nats.

    Source: Garg et al. 2019, "Jointly Learning to Align and Translate with
    Transformer Models", section 4.2.
    """
    is_linked_BTS = ops.cast(is_linked_BTS, "float32")
    num_links_BT1 = ops.sum(is_linked_BTS, axis=-1, keepdims=True)
    share_BTS = is_linked_BTS / ops.maximum(num_links_BT1, 1.0)
    return -ops.sum(share_BTS * ops.log(weights_BTS + _TINY))


def largest_chunk(V: int, chunk_logits: int | None = None) -> int:
    """Returns how many tokens' logits are computed at a time.

    Args:
        V: int, logits of a token.
        chunk_logits: int, how many at a time; CHUNK_LOGITS if not given.
    """
    return max(1, (chunk_logits or CHUNK_LOGITS) // V)


def _chunks(N: int | Tensor, largest: int) -> tuple[int | Tensor, int | Tensor]:
    """Returns (size, number) of the equal chunks that hold N positions."""
    num_chunks = -(-N // largest)
    return -(-N // num_chunks), num_chunks


def _loss_and_gradients(
    x_PD: Tensor,
    embedding_VD: Tensor,
    target_ids_P: Tensor,
    *,
    num_tokens: Tensor,
    chunk_size: int | Tensor,
    label_smoothing: float,
    loss_scale: float | Tensor | None,
) -> tuple[Tensor, Tensor, Tensor]:
    """Returns the summed loss, and its scaled gradients for x and for E.

    Args:
        x_PD: float, P positions, a multiple of the size of a chunk.
        embedding_VD: float32, E.
        target_ids_P: int32, those of tokens first, then PAD, which counts for
            nothing.
        num_tokens: int32 [], how many are tokens; chunks after them are left
            out.
        chunk_size: C.
        label_smoothing: e.
        loss_scale: of the gradients only, None for 1.

    Returns:
        (float32 [], gradient of x_PD in its dtype, gradient_VD in float32).
    """
    D = x_PD.shape[-1]
    position_C = ops.arange(chunk_size, dtype="int32")
    matrix_VD = ops.cast(embedding_VD, x_PD.dtype)

    def add_chunk(start, loss, x_PD, gradient_VD):
        """Returns the loop's values after one more chunk.

        Rows of x_PD are replaced by their gradient once they have been used.
        """
        x_CD = ops.slice(x_PD, (start, 0), (chunk_size, D))
        ids_C = ops.slice(target_ids_P, (start,), (chunk_size,))
        is_token_C1 = ops.cast(ops.not_equal(ids_C, PAD), "float32")[:, None]
        mask_C1 = ops.cast(is_token_C1, x_PD.dtype)
        logits_CV = ops.matmul(x_CD, ops.transpose(matrix_VD))
        loss_C1, gradient_CV = _losses_and_gradient(
            ops.cast(logits_CV, "float32"), ids_C, label_smoothing
        )
        if loss_scale is not None:
            # Without the mask, padding might be infinite in float16.
            gradient_CV *= loss_scale * is_token_C1
        gradient_CV = ops.cast(gradient_CV, x_PD.dtype)
        part_VD = ops.matmul(ops.transpose(gradient_CV), x_CD * mask_C1)
        return (
            start + chunk_size,
            loss + ops.sum(loss_C1 * is_token_C1),
            ops.scatter_update(
                x_PD,
                (start + position_C)[:, None],
                ops.matmul(gradient_CV, matrix_VD) * mask_C1,
            ),
            gradient_VD + ops.cast(part_VD, "float32"),
        )

    start, loss, x_PD, gradient_VD = ops.while_loop(
        lambda start, *_: start < num_tokens,
        add_chunk,
        (0, 0.0, x_PD, ops.zeros(embedding_VD.shape, "float32")),
    )
    is_done_P = ops.arange(ops.shape(x_PD)[0], dtype="int32") < start
    return loss, ops.where(is_done_P[:, None], x_PD, 0), gradient_VD


def _losses_and_gradient(
    logits_NV: Tensor, target_ids_N: Tensor, label_smoothing: float
) -> tuple[Tensor, Tensor]:
    """Returns loss_N1, and its gradient_NV: softmax - target distribution.

    The loss is log sum exp - (1 - e) x_target - e mean x, for logits x less
    their maximum; the sum is 1 / the largest softmax. So the exponentials are
    those of one softmax, which oneDNN computes in few passes.
    """
    V = logits_NV.shape[-1]
    p_NV = ops.softmax(logits_NV)
    largest_N1 = ops.max(logits_NV, axis=1, keepdims=True)
    target_N1 = rows.gather(logits_NV, target_ids_N[:, None])
    mean_N1 = ops.mean(logits_NV, axis=1, keepdims=True)
    loss_N1 = -ops.log(ops.max(p_NV, axis=1, keepdims=True))
    loss_N1 -= (1 - label_smoothing) * (target_N1 - largest_N1)
    loss_N1 -= label_smoothing * (mean_N1 - largest_N1)
    others = label_smoothing / V
    target_NV = rows.one_hot(
        target_ids_N, V, hit=1 - label_smoothing + others, others=others
    )
    return loss_N1, p_NV - target_NV


@keras.saving.register_keras_serializable("t2t_lite")
class LabelSmoothedCrossEntropy(keras.losses.Loss):
    """The mean of `cross_entropy` over all target tokens of a batch.

    For `model.compile(loss=...)`: it takes logits, before any softmax, and
    leaves out padding, whose id is 0.

    Args:
        label_smoothing: e in [0, 1).
        name: that of the loss in logs.
    """

    def __init__(
        self,
        label_smoothing: float = 0.1,
        name: str = "label_smoothed_cross_entropy",
    ) -> None:
        require_rate(label_smoothing=label_smoothing)
        super().__init__(name=name)
        self.label_smoothing = label_smoothing

    def __call__(
        self, y_true: Tensor, y_pred: Tensor, sample_weight: None = None
    ) -> Tensor:
        """Returns nats per target token, a float32 scalar.

        Args:
            y_true: int target ids [B, T], 0 for padding.
            y_pred: float logits [B, T, V].
            sample_weight: None.

        Raises:
            InputError: y_true is not integers, or its sizes differ from
                y_pred's; or, outside of graphs, some are not ids below V. In a
                graph, such tokens make the loss NaN.
            ValueError: a sample_weight is given; tokens have none.
        """
        if sample_weight is not None:
            raise ValueError("sample_weight is not supported; use id 0 to pad")
        loss, tokens = cross_entropy(y_pred, y_true, self.label_smoothing)
        return loss / ops.maximum(tokens, 1.0)

    def get_config(self) -> dict[str, Any]:
        return {"label_smoothing": self.label_smoothing, "name": self.name}
