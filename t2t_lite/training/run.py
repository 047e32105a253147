"""A training run: from text pairs to checkpoints, and on from any of them."""

import contextlib
import dataclasses
import functools
import math
import pathlib
import shlex
import signal
import tempfile
import time

import numpy as np
import tensorflow as tf
from absl import logging

from t2t_lite import tasks
from t2t_lite.decoding import search as decoding
from t2t_lite.errors import InputError
from t2t_lite.evaluation.perplexity import TokenScorer
from t2t_lite.storage import checkpoints, model_directory
from t2t_lite.storage.model_directory import ModelDirectory
from t2t_lite.text import batching, token_files
from t2t_lite.training.cost import describe_cost
from t2t_lite.training.preparation import prepare
from t2t_lite.training.progress import Progress, not_finite
from t2t_lite.training.trainer import (
    Trainer,
    best_num_parts,
    is_chief,
    make_strategy,
)

_LINES_SHOWN = 3
_WIDTH_SHOWN = 500  # Characters of each; a tree can have thousands.
_LINES_AT_ONCE = 256
_WIDEST_DEV_BEAM = 4


@dataclasses.dataclass(frozen=True)
class RunOptions:
    """How to run; all of it may change when a run is resumed."""

    strategy: str = "auto"
    precision: str = "float32"
    xla: bool = False
    micro_batch_tokens: int | None = None  # None: as many as fit the memory
    save_every_minutes: float = 10.0
    save_every_steps: int | None = None  # instead of minutes
    keep_last: int | None = None  # None: as many as are averaged, at least 2
    evaluate_every_steps: int | None = None  # None: five times in a run
    patience: int | None = None  # evaluations without a better dev score
    warm_start_from: str | None = None  # a model directory or a checkpoint
    vocabulary: str | None = None  # a SentencePiece model
    cache_dir: str | None = None  # of tokens; None: the model directory
    sustained_tflops: float | None = None  # of one device, to estimate the cost

    def __post_init__(self):
        for name in (
            "micro_batch_tokens",
            "save_every_steps",
            "keep_last",
            "evaluate_every_steps",
            "patience",
        ):
            value = getattr(self, name)
            if value is not None and value < 1:
                raise InputError(
                    f"{name} must be at least 1; received {name}={value}"
                )
        if not self.save_every_minutes >= 0:  # NaN is refused too.
            raise InputError(
                "save_every_minutes must be at least 0; received "
                f"save_every_minutes={self.save_every_minutes}"
            )
        tflops = self.sustained_tflops
        if tflops is not None and not 0 < tflops < math.inf:
            raise InputError(
                "sustained_tflops must be above 0; received "
                f"sustained_tflops={tflops}"
            )

    @classmethod
    def of(cls, values):
        """Returns the options among the items of a dict."""
        names = [field.name for field in dataclasses.fields(cls)]
        return cls(**{name: values[name] for name in names})


def train(model_dir, hparams, text, options):
    """Trains until the last step, from the last checkpoint if there is one.

    Args:
        model_dir: path of the model directory, made if there is none.
        hparams: HParams.
        text: TrainingText.
        options: RunOptions.

    Returns:
        int, the number of the signal that stopped it; 0 if it came to its end.

    Raises:
        InputError: the text, the directory or an option cannot be used, or the
            loss is not finite.
    """
    strategy = make_strategy(options.strategy)
    with _own_directory(model_dir, strategy) as directory:
        run = _Run(directory, hparams, text, options, strategy)
        with _Stop() as stop:
            run.loop(stop)
        if not stop.signal:
            run.report()
        return stop.signal


@contextlib.contextmanager
def _own_directory(model_dir, strategy):
    """Gives the model directory, or to a worker that is no chief its own."""
    directory = ModelDirectory(model_dir)
    if is_chief(strategy):
        with directory.locked():
            yield directory
        return
    with tempfile.TemporaryDirectory() as path:
        own = ModelDirectory(path)
        if directory.vocabulary_path.exists():
            directory.vocabulary().save(own.vocabulary_path)
        yield own


class _Stop:
    """Notes SIGTERM and Ctrl-C; a second Ctrl-C stops at once."""

    def __init__(self):
        self.signal = 0
        self._before = {}

    def __enter__(self):
        for number in (signal.SIGTERM, signal.SIGINT):
            with contextlib.suppress(ValueError):  # Not the main thread.
                self._before[number] = signal.signal(number, self._note)
        return self

    def __exit__(self, *_):
        for number, handler in self._before.items():
            signal.signal(number, handler)

    def _note(self, number, _):
        if self.signal and number == signal.SIGINT:
            raise KeyboardInterrupt
        self.signal = int(number)
        logging.info("Stopping: saving a checkpoint first.")

    def __call__(self):
        return bool(self.signal)


class _Run:
    """One process' part in a run."""

    def __init__(self, directory, hparams, text, options, strategy):
        self.directory, self.hparams, self.options = directory, hparams, options
        self.is_chief = is_chief(strategy)
        self.task = tasks.task_of(hparams)
        text = text.checked(self.task.check_pair)
        # What can be wrong with these is better said before the long work.
        self.held_out = text.held_out()
        warm_start = _warm_start(options.warm_start_from)
        prepared = prepare(directory, hparams, text, options)
        self.vocabulary, self.pairs = prepared.vocabulary, prepared.pairs
        self.trainer = Trainer(
            hparams,
            self.vocabulary.size,
            strategy,
            options.precision,
            options.xla,
            self.task.num_target_ids(self.vocabulary),
            best_num_parts(strategy, options.xla),
        )
        logging.info(
            "Training a model of %s weights in %s on %s.",
            f"{self.trainer.model.count_params():,}",
            directory.path,
            ", ".join(strategy.extended.worker_devices),
        )
        self.micro_batch_tokens = _as_the_chief(self.trainer, prepared.settings)
        self.best_score, self.evaluations_without_gain = -1.0, 0
        self.evaluated_step = 0
        self._made_by_a_stop = None  # The checkpoint that it went on from.
        self.device_seconds = 0.0  # Up to `resumed_at`; NaN if not known.
        self._restore(warm_start)
        self.resumed_at = time.monotonic()
        self._evaluator = None
        self.writer = (
            tf.summary.create_file_writer(str(directory.summaries))
            if self.is_chief
            else tf.summary.create_noop_writer()
        )
        self.progress = Progress(self.trainer, hparams.steps, self.writer)
        self.saved_at, self.saved_step = time.monotonic(), self.trainer.step

    def _restore(self, warm_start):
        found = next(checkpoints.newest(self.directory.checkpoints), None)
        if found is not None:
            path, tensors = found
            self.trainer.restore(tensors, str(path))
            self.best_score = float(
                tensors.get("best_score", tensors.get("best_bleu", -1.0))
            )
            self.evaluations_without_gain = int(
                tensors["evaluations_without_gain"]
            )
            self.evaluated_step = int(tensors["evaluated_step"])
            # Checkpoints of 0.1.0 can lack it.
            self.device_seconds = float(tensors.get("device_seconds", math.nan))
            if tensors.get("made_by_a_stop", False):
                self._made_by_a_stop = path
            logging.info("Going on from %s.", path)
        elif warm_start is not None:
            description, tensors = warm_start
            model_directory.assign(self.trainer.weights, tensors, description)
            logging.info("Starting from the weights of %s.", description)
        self.trainer.take_over_from_chief()
        for name in ("evaluations_without_gain", "evaluated_step"):
            setattr(
                self, name, int(self.trainer.from_chief(getattr(self, name)))
            )

    def loop(self, stop):
        """Updates until the last step, or until a stop or too little gain."""
        self.evaluate_if_due(stop)  # A stop may have come before it.
        for source_ids, target_ids in self._batches():
            update = self.trainer.update(
                source_ids,
                target_ids,
                self._num_micro_batches(source_ids, target_ids),
                stop,
            )
            if update is None:
                break
            self.progress.add(update)
            # First evaluate, so that what is saved knows of it.
            self.evaluate_if_due(stop)
            if self._save_is_due():
                self.save()
            if self._has_lost_patience():
                break
            if self.trainer.has_other_workers and update.stops > 0:
                stop.signal = stop.signal or int(signal.SIGTERM)
                break
        self.progress.flush()
        if self.trainer.step > self.saved_step:
            self.save(bool(stop.signal))
        elif not stop.signal:
            logging.info("All %d updates are done.", self.trainer.step)
        if stop.signal:
            logging.info("Stopped; the same command goes on from here.")

    def _batches(self):
        plan = batching.BatchPlan(
            batching.make_buckets(
                self.pairs.source_lengths,
                self.pairs.target_lengths,
                self.hparams.tokens_per_batch,
                self.hparams.num_buckets,
            ),
            self.hparams.seed,
        )
        last_step = 0 if self._has_lost_patience() else self.hparams.steps
        return batching.training_batches(
            self.pairs, plan, self.trainer.step, last_step
        ).as_numpy_iterator()

    def _num_micro_batches(self, source_ids, target_ids):
        replicas = self.trainer.strategy.num_replicas_in_sync
        longer_side = max(source_ids.shape[1], target_ids.shape[1])
        rows = max(1, self.micro_batch_tokens // longer_side)
        return math.ceil(len(source_ids) / (rows * replicas))

    @property
    def _evaluation_steps(self):
        return self.options.evaluate_every_steps or max(
            1, self.hparams.steps // 5
        )

    def _save_is_due(self):
        if self.options.save_every_steps:
            return self.trainer.step % self.options.save_every_steps == 0
        minutes = (time.monotonic() - self.saved_at) / 60
        return minutes >= self.options.save_every_minutes

    def save(self, is_a_stop=False):
        """Writes a checkpoint, if this process is the chief.

        One that a stop made goes when there is another: an average of the last
        ones must not depend on when a run was stopped.
        """
        self.progress.flush()
        if not self.trainer.weights_are_finite():
            raise InputError(not_finite("the weights are", self.trainer))
        if self.is_chief:
            path = self.directory.checkpoints / f"step-{self.trainer.step}"
            tensors = self._tensors() | {"made_by_a_stop": np.bool_(is_a_stop)}
            checkpoints.write(path, tensors)
            if self._made_by_a_stop is not None:
                checkpoints.remove(self._made_by_a_stop)
                self._made_by_a_stop = None
            keep = self.options.keep_last or max(2, self.hparams.average_last)
            checkpoints.prune(self.directory.checkpoints, keep, path)
            logging.info("Saved %s.", path)
        self.saved_at, self.saved_step = time.monotonic(), self.trainer.step

    def _tensors(self):
        return self.trainer.tensors() | {
            "best_score": np.float64(self.best_score),
            "evaluations_without_gain": np.int64(self.evaluations_without_gain),
            "evaluated_step": np.int64(self.evaluated_step),
            "device_seconds": np.float64(self._device_seconds()),
        }

    def _device_seconds(self):
        """Returns the wall time of all devices in training, up to now.

        Evaluation on dev and saving are part of it; preparation is not.
        """
        devices = self.trainer.strategy.num_replicas_in_sync
        return self.device_seconds + devices * (
            time.monotonic() - self.resumed_at
        )

    def evaluate_if_due(self, stop):
        """Logs the dev set's perplexity and BLEU or F1; keeps the best."""
        step = self.trainer.step
        is_due = step > self.evaluated_step and (
            step % self._evaluation_steps == 0
        )
        if not is_due or "dev" not in self.held_out:
            return
        self.progress.flush()
        if self.is_chief:
            with self.progress.paused():
                self._evaluate(step, stop)
        for name in ("evaluations_without_gain", "evaluated_step"):
            setattr(
                self, name, int(self.trainer.from_chief(getattr(self, name)))
            )

    def _evaluate(self, step, stop):
        if self._evaluator is None:
            self._evaluator = _DevEvaluator(
                self.task,
                self.trainer.model,
                self.directory,
                self.held_out["dev"],
            )
        scores = self._evaluator(stop)
        if scores is None:
            return
        token_scores, score = scores
        logging.info(
            "Step %d: dev perplexity %.3f, dev %s %.2f",
            *(step, token_scores.perplexity, score.name, score.value),
        )
        with self.writer.as_default(step=step):
            tf.summary.scalar("dev/perplexity", token_scores.perplexity)
            tf.summary.scalar(f"dev/{score.name.lower()}", score.value)
        self.evaluated_step = step
        self.evaluations_without_gain += 1
        if score.value > self.best_score:
            self.best_score = score.value
            self.evaluations_without_gain = 0
            path = self.directory.best / f"step-{step}"
            checkpoints.write(path, self._tensors())
            checkpoints.prune(self.directory.best, 1, path)

    def _has_lost_patience(self):
        patience = self.options.patience
        if patience is None or self.evaluations_without_gain < patience:
            return False
        logging.info(
            "No better score on dev in %d evaluations: stopping at step %d.",
            self.evaluations_without_gain,
            self.trainer.step,
        )
        return True

    def report(self):
        """Prints scores, some translations and the cost, if it is the chief."""
        if not self.is_chief:
            return
        cost = describe_cost(
            self.trainer.flops,
            self._device_seconds() / 3600,
            self.options.sustained_tflops,
        )
        kept = len(checkpoints.paths(self.directory.checkpoints))
        count = min(kept, self.hparams.average_last)
        if self.held_out:
            self._report_scores(count)
            print()
        path = str(self.directory.path)
        of_last = f" --average_last={count}" if count > 1 else ""
        print(
            f"{cost}\n\nTo use this model:\n"
            f"  bin/translate --model_dir={shlex.quote(path)}{of_last}"
        )

    def _report_scores(self, count):
        """Prints the scores of the average of the last `count` checkpoints.

        Source: section 6.1.
        """
        translator = self.task.open(
            self.directory.path, average_last=count, xla=False
        )
        print(f"Model: {translator.description}")
        for split, pairs in self.held_out.items():
            sources, references = zip(*pairs, strict=True)
            translations = translator(sources)
            score = self.task.score(translations, references)
            print(f"{split} {score.name} {score.value:.2f} ({score.signature})")
        for n in range(min(_LINES_SHOWN, len(sources))):
            shown = sources[n], references[n], translations[n]
            source, reference, output = map(_clipped, shown)
            print(
                f"\n  source     {source}\n  reference  {reference}"
                f"\n  output     {output}"
            )


def _clipped(text):
    more = len(text) - _WIDTH_SHOWN
    return text if more <= 0 else f"{text[:_WIDTH_SHOWN]} ... ({more} more)"


class _DevEvaluator:
    """Scores the model in training on the dev set.

    A wide beam is for the end: here it is that of translation at most.
    """

    def __init__(self, task, model, directory, pairs):
        self.score = task.score
        vocabulary = directory.vocabulary()
        self.sources, self.references = map(list, zip(*pairs, strict=True))
        token_pairs = token_files.encode_pairs(
            pairs,
            vocabulary,
            functools.partial(task.encode_targets, vocabulary),
        )
        self.token_scorer = TokenScorer(model, token_pairs)
        width = min(model.hparams.beam_width, _WIDEST_DEV_BEAM)
        self.translator = task.from_model(
            model,
            directory,
            decoding.SearchOptions.from_hparams(
                model.hparams, beam_width=width
            ),
        )

    def __call__(self, stop):
        """Returns (TokenScores, Score of BLEU or F1), None if stopped."""
        translations = []
        for best, *_ in self.translator.stream(self.sources, _LINES_AT_ONCE):
            if stop():
                return None
            translations.append(best.text)
        return self.token_scorer(), self.score(translations, self.references)


def _warm_start(path):
    """Returns (description, weights) of a model directory or a checkpoint."""
    if path is None:
        return None
    if pathlib.Path(path).is_dir():
        return ModelDirectory(path).weights()
    path = path.removesuffix(".index")
    return path, checkpoints.read(path, model_directory.is_weight)


def _as_the_chief(trainer, settings):
    """Returns the micro-batch of all workers, after a look at their corpora.

    Raises:
        InputError: this worker has another corpus or vocabulary than the chief.
    """
    for name in ("data_sha256", "vocabulary_sha256"):
        mine = np.int64(int(getattr(settings, name)[:12], 16))
        if trainer.from_chief(mine) != mine:
            raise InputError(
                f"this worker's {name} is not the chief's: give all workers "
                "the same training text and the same --vocabulary"
            )
    return int(trainer.from_chief(settings.micro_batch_tokens))
