"""Log probabilities of the next tokens, in few passes over the vocabulary."""

from typing import NamedTuple

from keras import ops

from t2t_lite.model.rows import gather
from t2t_lite.tensor import Tensor


class LogProbs(NamedTuple):
    """Logits, and what to subtract from them for log probabilities.

    Subtracting it from all of them would take one more pass.
    """

    logits_BWV: Tensor  # float32
    log_total_BW: Tensor  # float32, what all probabilities are divided by

    def at(self, ids_BW: Tensor) -> Tensor:
        """Returns the log probability of one token of each hypothesis."""
        logits_BW = gather(self.logits_BWV, ids_BW, batch_dims=2)
        return logits_BW - self.log_total_BW


def log_softmax(logits_BWV: Tensor) -> LogProbs:
    """Returns the log softmax of logits.

    The log-sum-exp is the largest logit less the logarithm of the largest
    probability: the kernel of the softmax is faster than that of the log
    softmax.

    Args:
        logits_BWV: float.
    """
    logits_BWV = ops.cast(logits_BWV, "float32")
    largest_p_BW = ops.max(ops.softmax(logits_BWV), axis=-1)
    log_total_BW = ops.max(logits_BWV, axis=-1) - ops.log(largest_p_BW)
    return LogProbs(logits_BWV, log_total_BW)
