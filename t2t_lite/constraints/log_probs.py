"""Log probabilities of the next tokens, in few passes over the vocabulary."""

from typing import NamedTuple

from keras import ops

from t2t_lite.model.rows import gather
from t2t_lite.tensor import NEG_INF, Tensor


class LogProbs(NamedTuple):
    """Logits, and what to subtract from them for log probabilities.

    Subtracting it from all of them would take one more pass. A constraint
    changes logits and keeps the total, so that what it leaves is as likely as
    before: the total need not be that of the logits. With a total of 0, the
    logits are log probabilities.
    """

    logits_BWV: Tensor  # float32, -inf or NEG_INF for what must not follow
    log_total_BW: Tensor  # float32

    def at(self, ids_BW: Tensor) -> Tensor:
        """Returns the log probability of one token of each hypothesis."""
        logits_BW = gather(self.logits_BWV, ids_BW, batch_dims=2)
        return logits_BW - self.log_total_BW


def log_softmax(logits_BWV: Tensor) -> LogProbs:
    """Returns the log softmax of logits.

    The log-sum-exp is the largest logit less the logarithm of the largest
    probability: on a CPU, the kernel of the softmax is faster than that of the
    log softmax.

    Args:
        logits_BWV: float.
    """
    logits_BWV = ops.cast(logits_BWV, "float32")
    largest_p_BW = ops.max(ops.softmax(logits_BWV), axis=-1)
    log_total_BW = ops.max(logits_BWV, axis=-1) - ops.log(largest_p_BW)
    # Where nothing is possible, nothing becomes so.
    return LogProbs(logits_BWV, ops.maximum(log_total_BW, NEG_INF / 2))
