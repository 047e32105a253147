"""Whether float16 holds the gradients of an update, and what if it does not."""

import tensorflow as tf

from t2t_lite.optimization.divergence import DivergenceError
from t2t_lite.optimization.sharding import Batch
from t2t_lite.optimization.training_state import TrainingState
from t2t_lite.optimization.update import Update
from t2t_lite.optimization.update_graphs import UpdateGraphs


class LossScaling:
    """Adapts the loss scale to the gradients that were added.

    Args:
        state: TrainingState, which has the scale.
        graphs: UpdateGraphs, which have the gradients.
    """

    def __init__(self, state: TrainingState, graphs: UpdateGraphs):
        self._state, self._graphs = state, graphs

    def fits(self, batch: Batch) -> bool:
        """Returns whether the gradients of a batch can be applied.

        If float16 could not hold them, they are cleared, so that the same batch
        can be tried again with half the scale. Other precisions always can.

        Args:
            batch: Batch, all of whose micro-batches were added.

        Raises:
            DivergenceError: float16 cannot hold them at any scale.
        """
        if not self._state.is_scaled:
            return True
        is_finite = self._graphs.gradients_are_finite()
        adapted = self._state.loss_scale.after(is_finite)
        if adapted.is_too_small:
            raise self._divergence(batch)
        self._state.loss_scale = adapted
        if not is_finite:
            self._graphs.clear()
        return is_finite

    def _divergence(self, batch: Batch) -> DivergenceError:
        """Returns the error for gradients that no loss scale makes finite.

        They are the gradients that were added, and they are cleared.
        """
        totals = self._graphs.totals()
        norms = self._graphs.gradient_norms(self._graphs.gradients())
        failed = Update(
            loss=totals.loss / tf.maximum(totals.tokens, 1.0),
            tokens=totals.tokens,
            gradient_norms=norms,
            step=self._state.step + 1,
            batch=batch.without_links(),
        )
        self._graphs.clear()
        reason = "the gradients are not finite at any loss scale"
        return DivergenceError(reason, failed.step, failed)
