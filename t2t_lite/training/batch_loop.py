"""The loop over the batches of a run: updates, evaluations, checkpoints."""

import signal
from collections.abc import Iterator

from absl import logging

from t2t_lite.model import flops
from t2t_lite.optimization.micro_batches import num_micro_batches
from t2t_lite.optimization.sharding import Batch
from t2t_lite.training.hang_watch import HangWatch
from t2t_lite.training.progress import Progress
from t2t_lite.training.run_state import RunState
from t2t_lite.training.stop_signal import StopSignal


class BatchLoop:
    """Does the updates that a run has left.

    Args:
        state: RunState.
        micro_batch_tokens: int, that of `num_micro_batches`.
        progress: Progress.
        hang_watch: HangWatch.
    """

    def __init__(
        self,
        state: RunState,
        micro_batch_tokens: int,
        progress: Progress,
        hang_watch: HangWatch,
    ):
        self._state, self._inputs = state, state.inputs
        self._trainer, self._dev = state.trainer, state.dev
        self._checkpointer = state.checkpointer
        self._micro_batch_tokens = micro_batch_tokens
        self._progress, self._hang_watch = progress, hang_watch

    def restart(self) -> None:
        """Starts over from the trainer's step, once the run went back to it."""
        self._progress.restart()
        self._hang_watch.heartbeat()

    def run(self, stop: StopSignal) -> None:
        """Updates until the last step, or until a stop or too little gain.

        Args:
            stop: StopSignal.

        Raises:
            DivergenceError: an update diverged.
        """
        steps = self._inputs.hparams.steps
        if self._trainer.step > steps:
            logging.warning(
                "%d updates are done already, more than steps=%d: nothing is "
                "left to do.",
                self._trainer.step,
                steps,
            )
        self._evaluate_if_due(stop)  # A signal may have cut it short before.
        self._update(stop)
        self._progress.flush()
        if self._trainer.step > self._checkpointer.saved_step:
            self._save(stop.is_requested())
        if self._trainer.step >= steps:
            logging.info("All %d updates are done.", self._trainer.step)
        if stop.is_requested():
            logging.info("Stopped; run the same command again to resume.")

    def _update(self, stop: StopSignal) -> None:
        """Does an update with each batch, and what is due after it."""
        for batch in self._batches(stop):
            update = self._trainer.update(
                batch,
                num_micro_batches=self._num_micro_batches(batch),
                should_stop=stop.is_requested,
            )
            if update is None:
                return
            self._hang_watch.heartbeat()
            self._count_operations(batch)
            self._progress.add(update)
            # First, so that the checkpoint knows the score.
            self._evaluate_if_due(stop)
            self._save_if_due()
            if self._dev.has_lost_patience(self._trainer.step):
                return
            if self._trainer.agree_to_stop():
                stop.number = stop.number or int(signal.SIGTERM)
                return

    def _batches(self, stop: StopSignal) -> Iterator[Batch]:
        """Returns the batches of the updates to do."""
        is_over = self._dev.has_lost_patience(self._trainer.step)
        steps = self._inputs.hparams.steps
        num_left = 0 if is_over else steps - self._trainer.step

        def should_stop() -> bool:
            # One of several workers continues until all agree to stop.
            return stop.is_requested() and not self._trainer.has_other_workers

        first = self._state.num_fed
        return self._inputs.feed.batches(
            first, first + max(0, num_left), should_stop
        )

    def _num_micro_batches(self, batch: Batch) -> int:
        return num_micro_batches(
            batch_size=len(batch.source_ids),
            length=max(batch.source_ids.shape[1], batch.target_ids.shape[1]),
            micro_batch_tokens=self._micro_batch_tokens,
            num_replicas=self._inputs.strategy.num_replicas_in_sync,
        )

    def _count_operations(self, batch: Batch) -> None:
        """Adds an update to the cost, including padding."""
        self._state.cost.flops += flops.update_flops(
            self._inputs.hparams,
            self._trainer.model.num_target_ids,
            batch_size=len(batch.source_ids),
            source_length=batch.source_ids.shape[1],
            target_length=batch.target_ids.shape[1],
        )

    def _save_if_due(self) -> None:
        if not self._checkpointer.is_due(self._trainer.step):
            return
        is_alone = not self._trainer.has_other_workers
        # Other workers may not be about to save, and all must go back together:
        # the next update shows them, too, that the weights are not finite.
        if is_alone or self._trainer.state.weights_are_finite():
            self._save(is_stop=False)

    def _save(self, is_stop: bool) -> None:
        """Writes a checkpoint, if this process is the chief."""
        self._progress.flush()
        self._state.watchdog.require_finite_weights()
        step = self._trainer.step
        if self._inputs.is_chief:
            self._checkpointer.save(step, self._state.tensors(), is_stop)
        self._checkpointer.note_saved(step)
        self._hang_watch.heartbeat()

    def _evaluate_if_due(self, stop: StopSignal) -> None:
        """Scores the model on dev, and keeps it if it is the best."""
        if not self._dev.is_due(self._trainer.step):
            return
        self._progress.flush()
        self._state.watchdog.require_finite_weights()
        with self._hang_watch.paused():
            if self._inputs.is_chief:
                with self._progress.paused():
                    self._evaluate(stop)
            self._dev.state = self._dev.state.copied_from_chief(
                self._inputs.strategy
            )

    def _evaluate(self, stop: StopSignal) -> None:
        step = self._trainer.step
        if self._dev.evaluate(step, stop.is_requested):
            self._checkpointer.save_best(step, self._state.tensors())
