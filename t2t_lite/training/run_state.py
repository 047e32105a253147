"""All that a run keeps in its checkpoints, and goes on from."""

import pathlib
from typing import Any

from absl import logging

from t2t_lite.optimization.trainer import Trainer
from t2t_lite.storage import checkpoint_files, model_directory, origin
from t2t_lite.training.checkpointing import Checkpointer
from t2t_lite.training.cost import Cost
from t2t_lite.training.dev_evaluation import DevEvaluation, DevState
from t2t_lite.training.run_inputs import RunInputs
from t2t_lite.training.summaries import Summaries
from t2t_lite.training.watchdog import Watchdog


class RunState:
    """The parts of a run that checkpoints keep, and what restores them.

    Args:
        inputs: RunInputs.
        trainer: Trainer.
        summaries: Summaries.
    """

    def __init__(
        self, inputs: RunInputs, trainer: Trainer, summaries: Summaries
    ):
        hparams, options = inputs.hparams, inputs.options
        self.inputs, self.trainer = inputs, trainer
        self.dev = DevEvaluation(
            inputs.task,
            trainer.model,
            inputs.directory,
            pairs=inputs.dev_pairs,
            sha256=inputs.dev_sha256,
            options=options,
            summaries=summaries,
            hardware=inputs.hardware,
        )
        self.checkpointer = Checkpointer(
            inputs.directory,
            options.with_save_every_steps(hparams.save_every_steps),
            hparams.average_last,
        )
        self.cost = Cost(inputs.strategy.num_replicas_in_sync)
        self.watchdog = Watchdog(
            trainer,
            inputs.directory if inputs.is_chief else None,
            options,
            task=inputs.task,
            vocabulary=inputs.prepared.vocabulary,
        )

    @property
    def num_fed(self) -> int:
        """How many batches of the feed come before the next update."""
        return self.trainer.step + self.watchdog.skipped.skipped_batches

    @property
    def _vocabulary_sha256(self) -> str:
        return self.inputs.prepared.settings.vocabulary_sha256

    def tensors(self) -> dict[str, Any]:
        """Returns all that is needed to resume the run from here."""
        return (
            self.trainer.state.tensors()
            | self.dev.state.tensors()
            | self.cost.tensors()
            | self.watchdog.tensors()
            | self.inputs.feed.tensors(self.num_fed)
            | origin.tensors(self.inputs.hparams, self._vocabulary_sha256)
        )

    def restore(self) -> None:
        """Resumes from the newest checkpoint, or starts from other weights."""
        self._start_from(self.checkpointer.restore())

    def go_back(self) -> None:
        """Goes back to the last checkpoint, or to before the first update."""
        found = self.checkpointer.restore(goes_back=True)
        if found is None:
            self.trainer.state.reset()
        self.inputs.feed.reset()
        self.watchdog.restore({})
        self.dev.state = DevState(dev_sha256=self.inputs.dev_sha256)
        seconds = self.cost.device_seconds
        self.cost = Cost(self.cost.num_devices)
        self._start_from(found)
        # Discarded updates do not count, but the time that they took does.
        self.cost.earlier_device_seconds = seconds

    def _start_from(
        self, found: tuple[pathlib.Path, dict[str, Any]] | None
    ) -> None:
        """Starts from a checkpoint, or from other weights if there is none.

        Args:
            found: its path and its tensors.
        """
        if found is not None:
            self._start_from_checkpoint(*found)
        elif self.inputs.warm_start is not None:
            description, tensors = self.inputs.warm_start
            model_directory.assign(self.trainer.weights, tensors, description)
            logging.info("Starting from the weights of %s.", description)
        self._copy_from_chief()
        self.checkpointer.note_saved(self.trainer.step)

    def _start_from_checkpoint(
        self, path: pathlib.Path, tensors: dict[str, Any]
    ) -> None:
        origin.require(
            tensors,
            self.inputs.hparams,
            self._vocabulary_sha256,
            description=str(path),
        )
        self.trainer.state.restore(tensors, str(path))
        self.dev.resume(
            DevState.restored(tensors),
            has_best=bool(checkpoint_files.paths(self.inputs.directory.best)),
        )
        self.cost = Cost.restored(tensors, self.cost.num_devices)
        self.watchdog.restore(tensors)
        self.inputs.feed.restore(tensors, self.num_fed, str(path))
        logging.info("Resuming from %s.", path)

    def _copy_from_chief(self) -> None:
        """Gives every worker what the chief starts from."""
        strategy = self.inputs.strategy
        self.trainer.state.copy_from_chief()
        self.watchdog.copy_from_chief(strategy)
        self.inputs.feed.copy_from_chief(strategy)
        self.dev.state = self.dev.state.copied_from_chief(strategy)
