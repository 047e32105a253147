"""One update of the model, on any number of replicas and micro-batches.

The gradient of an update is the sum over all its target tokens, divided once by
their number. How the batch is divided over replicas and micro-batches changes
only the rounding and the dropout masks.
"""

from collections.abc import Callable, Sequence

import keras
import tensorflow as tf

from t2t_lite.hparams import HParams
from t2t_lite.model.transformer import Transformer
from t2t_lite.optimization import optimizer
from t2t_lite.optimization.loss_scaling import LossScaling
from t2t_lite.optimization.sharding import Batch, Sharding
from t2t_lite.optimization.strategies import has_other_workers
from t2t_lite.optimization.training_state import TrainingState
from t2t_lite.optimization.update import Update
from t2t_lite.optimization.update_graphs import UpdateGraphs


class Trainer:
    """A model, its optimizer, and the update of both.

    Args:
        hparams: HParams.
        vocabulary_size: int.
        strategy: tf.distribute.Strategy; the current one if not given.
        precision: "float32", "bfloat16" or "float16", of the computation;
            weights, softmax and loss are always float32.
        xla: bool, whether XLA compiles the forward and backward pass.
        num_target_ids: int, that of Transformer.
        num_parts: int, how many parts of a micro-batch are computed side by
            side.
        chunk_logits: int, that of `projected_cross_entropy`.
    """

    def __init__(
        self,
        hparams: HParams,
        vocabulary_size: int,
        strategy: tf.distribute.Strategy | None = None,
        *,
        precision: str = "float32",
        xla: bool = False,
        num_target_ids: int | None = None,
        num_parts: int = 1,
        chunk_logits: int | None = None,
    ):
        self.strategy = strategy or tf.distribute.get_strategy()
        self.has_other_workers = has_other_workers(self.strategy)
        self.num_parts, self.is_compiled = num_parts, xla
        self.state = TrainingState(
            hparams,
            vocabulary_size,
            self.strategy,
            precision=precision,
            num_target_ids=num_target_ids,
        )
        self.graphs = UpdateGraphs(
            self.state,
            Sharding(hparams, self.strategy, num_parts),
            chunk_logits=chunk_logits,
            xla=xla,
        )
        self._loss_scaling = LossScaling(self.state, self.graphs)
        self._schedule = optimizer.schedule(hparams)
        self._stop_requests = tf.constant(0.0)

    @property
    def model(self) -> Transformer:
        """The model that is trained."""
        return self.state.model

    @property
    def weights(self) -> Sequence[keras.Variable]:
        """The weights of the model."""
        return self.state.weights

    @property
    def step(self) -> int:
        """How many updates were done."""
        return self.state.step

    def update(
        self,
        batch: Batch,
        num_micro_batches: int = 1,
        should_stop: Callable[[], bool] = lambda: False,
    ) -> Update | None:
        """Does one update; returns an Update, or None if it was given up.

        Args:
            batch: Batch, that of all replicas.
            num_micro_batches: int, how many parts each replica takes in turn.
            should_stop: returns whether this process wants to stop. If it is
                the only one, it gives up the update between two micro-batches,
                which leaves no trace. One of several workers finishes the
                update, and `agree_to_stop` then tells all of them.

        Raises:
            DivergenceError: float16 cannot hold the gradients at any loss
                scale.
        """
        is_added = False
        while not is_added:
            scale = self.state.loss_scale.scale
            for n in range(num_micro_batches):
                if should_stop() and not self.has_other_workers:
                    self.clear()
                    return None
                self.graphs.add(batch, n, num_micro_batches)
            is_added = self._loss_scaling.fits(batch)
        applied = self.graphs.apply(scale, float(should_stop()))
        self._stop_requests = applied.stop_requests
        self.state.step += 1
        return Update(
            loss=applied.loss,
            tokens=applied.tokens,
            gradient_norms=applied.gradient_norms,
            step=self.step,
            batch=batch.without_links(),
        )

    def agree_to_stop(self) -> bool:
        """Returns whether any worker wanted to stop in the last update.

        Every worker gets the same answer after the same update, because the
        requests are summed in the reduction that an update needs anyway.
        """
        if not self.has_other_workers:
            return False
        return float(self._stop_requests) > 0

    def add(self, batch: Batch, n: int = 0, num_micro_batches: int = 1) -> None:
        """Adds the n-th micro-batch of a batch to the sums of an update.

        Args:
            batch: Batch, that of all replicas.
            n: int, from 0.
            num_micro_batches: int, how many there are.
        """
        self.graphs.add(batch, n, num_micro_batches)

    def gradients(self) -> list[tf.Tensor]:
        """Returns the gradients of the loss over all that was added.

        Returns:
            list of float32 tensors, one for each of `weights`, in nats a token.
        """
        return self.graphs.gradients()

    def clear(self) -> None:
        """Forgets what was added since the last update."""
        self.graphs.clear()

    def learning_rate(self, step: int) -> float:
        """Returns the rate of update number `step`, counted from 1."""
        return float(self._schedule(step - 1))
