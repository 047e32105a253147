"""The training loss: cross-entropy with label smoothing, over tokens."""

import keras
from keras import ops

from t2t_lite.hparams import PAD


def cross_entropy(logits_BTV, target_ids_BT, label_smoothing=0.0):
    """Returns the summed loss of the target tokens, and how many there are.

    The target distribution of a token is 1 - e + e / V on the token and e / V
    on each other. Sum and count are kept apart so that they can be added up
    over replicas and micro-batches before the one division: a mean of means
    would weigh tokens by the batch they happen to be in.

    Args:
        logits_BTV: float [B, T, V]; the loss is computed in float32.
        target_ids_BT: int [B, T], 0 for padding, which counts for nothing.
        label_smoothing: float e in [0, 1).

    Returns:
        (float32 scalar in nats, float32 scalar number of tokens).

    Source: section 5.4; Szegedy et al. 2015, section 7, for the e / V.
    """
    loss_BT, is_token_BT = token_losses(
        logits_BTV, target_ids_BT, label_smoothing
    )
    return ops.sum(loss_BT), ops.sum(is_token_BT)


def token_losses(logits_BTV, target_ids_BT, label_smoothing=0.0):
    """Returns the loss of each token, and 1 or 0: whether it is a token.

    Args: those of `cross_entropy`.

    Returns:
        (float32 [B, T] in nats, 0 where there is padding; float32 [B, T]).
    """
    logits_BTV = ops.cast(logits_BTV, "float32")
    is_token_BT = ops.cast(ops.not_equal(target_ids_BT, PAD), "float32")
    if label_smoothing:
        V = logits_BTV.shape[-1]
        target_BTV = ops.one_hot(target_ids_BT, V, dtype="float32")
        target_BTV = (1 - label_smoothing) * target_BTV + label_smoothing / V
        loss_BT = ops.categorical_crossentropy(
            target_BTV, logits_BTV, from_logits=True
        )
    else:
        loss_BT = ops.sparse_categorical_crossentropy(
            target_ids_BT, logits_BTV, from_logits=True
        )
    return loss_BT * is_token_BT, is_token_BT


@keras.saving.register_keras_serializable("t2t_lite")
class LabelSmoothedCrossEntropy(keras.losses.Loss):
    """`cross_entropy` per token, for `model.compile(loss=...)`.

    Args:
        label_smoothing: float in [0, 1).
    """

    def __init__(
        self, label_smoothing=0.1, name="label_smoothed_cross_entropy"
    ):
        super().__init__(name=name)
        self.label_smoothing = label_smoothing

    def __call__(self, y_true, y_pred, sample_weight=None):
        """Returns nats per target token: y_true [B, T], y_pred [B, T, V].

        Raises:
            ValueError: a sample_weight, which a loss over tokens has no use of.
        """
        if sample_weight is not None:
            raise ValueError("sample_weight is not supported; use id 0 to pad")
        loss, tokens = cross_entropy(y_pred, y_true, self.label_smoothing)
        return loss / ops.maximum(tokens, 1.0)

    def get_config(self):
        return {"label_smoothing": self.label_smoothing, "name": self.name}
