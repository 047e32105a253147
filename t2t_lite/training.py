"""A training run: from text pairs to checkpoints, and on from any of them."""

import contextlib
import dataclasses
import math
import pathlib
import signal
import tempfile
import time

import numpy as np
import tensorflow as tf
from absl import logging

from t2t_lite import (
    batching,
    checkpoints,
    evaluation,
    model_directory,
    translation,
)
from t2t_lite.errors import InputError
from t2t_lite.preparation import Corpus, prepare  # noqa: F401
from t2t_lite.progress import Progress, not_finite
from t2t_lite.trainer import Trainer, is_chief, make_strategy

_LINES_SHOWN = 3
_LINES_AT_ONCE = 256


@dataclasses.dataclass(frozen=True)
class RunOptions:
    """How to run; all of it may change when a run is resumed."""

    strategy: str = "auto"
    precision: str = "float32"
    xla: bool = False
    micro_batch_tokens: int | None = None  # None: as many as fit the memory
    save_every_minutes: float = 10.0
    save_every_steps: int | None = None  # instead of minutes
    keep_last: int | None = None  # None: as many as are averaged
    evaluate_every_steps: int | None = None  # None: five times in a run
    patience: int | None = None  # evaluations without a better dev BLEU
    warm_start_from: str | None = None  # a model directory or a checkpoint
    vocabulary: str | None = None  # a SentencePiece model

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
        if self.save_every_minutes < 0:
            raise InputError(
                "save_every_minutes must be at least 0; received "
                f"save_every_minutes={self.save_every_minutes}"
            )

    @classmethod
    def of(cls, values):
        """Returns the options among the items of a dict."""
        names = [field.name for field in dataclasses.fields(cls)]
        return cls(**{name: values[name] for name in names})


def train(model_dir, settings, corpus, options):
    """Trains until the last step, from the last checkpoint if there is one.

    Args:
        model_dir: path of the model directory, made if there is none.
        settings: HParams.
        corpus: Corpus.
        options: RunOptions.

    Returns:
        int, the number of the signal that stopped it; 0 if it came to its end.

    Raises:
        InputError: the corpus, the directory or an option cannot be used, or
            the loss is not finite.
    """
    strategy = make_strategy(options.strategy)
    with _own_directory(model_dir, strategy) as directory:
        run = _Run(directory, settings, corpus, options, strategy)
        with _Stop() as run.stop:
            run.loop()
        if not run.stop.signal:
            run.report()
        return run.stop.signal


@contextlib.contextmanager
def _own_directory(model_dir, strategy):
    """Gives the model directory, or to a worker that is no chief its own."""
    directory = model_directory.ModelDirectory(model_dir)
    if is_chief(strategy):
        yield directory
        return
    with tempfile.TemporaryDirectory() as path:
        if directory.vocabulary_path.exists():
            own = model_directory.ModelDirectory(path)
            directory.vocabulary().save(own.vocabulary_path)
        yield model_directory.ModelDirectory(path)


class _Stop:
    """Notes SIGTERM and Ctrl-C; asking again for Ctrl-C stops at once."""

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
        if self.signal:
            raise KeyboardInterrupt
        self.signal = int(number)
        logging.info("Stopping: saving a checkpoint first.")

    def __call__(self):
        return bool(self.signal)


class _Run:
    """One process' part in a run."""

    def __init__(self, directory, settings, corpus, options, strategy):
        self.directory, self.hparams = directory, settings
        self.options, self.stop = options, _Stop()
        self.is_chief = is_chief(strategy)
        prepared = prepare(directory, settings, corpus, options)
        self.vocabulary, self.pairs = prepared.vocabulary, prepared.pairs
        self.micro_batch_tokens = prepared.micro_batch_tokens
        self.trainer = Trainer(
            settings,
            self.vocabulary.size,
            strategy,
            options.precision,
            options.xla,
        )
        self.best_bleu, self.evaluations_without_gain = -1.0, 0
        self.text = {
            split: list(corpus.splits[split]())
            for split in ("dev", "test")
            if split in corpus.splits
        }
        self._restore()
        self._evaluator = None
        self.writer = (
            tf.summary.create_file_writer(str(directory.summaries))
            if self.is_chief
            else tf.summary.create_noop_writer()
        )
        self.progress = Progress(self.trainer, settings.steps, self.writer)
        self.saved_at, self.saved_step = time.monotonic(), self.trainer.step

    def _restore(self):
        found = checkpoints.read_last(self.directory.checkpoints)
        if found is not None:
            path, tensors = found
            self.trainer.restore(tensors, str(path))
            self.best_bleu = float(tensors["best_bleu"])
            self.evaluations_without_gain = int(
                tensors["evaluations_without_gain"]
            )
            logging.info("Going on from %s.", path)
        elif self.options.warm_start_from:
            description, tensors = _warm_start(self.options.warm_start_from)
            model_directory.assign(self.trainer.weights, tensors, description)
            logging.info("Starting from the weights of %s.", description)
        self.trainer.take_over_from_chief()

    def loop(self):
        """Updates until the last step, or until a stop or too little gain."""
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
        batches = batching.training_batches(
            self.pairs, plan, self.trainer.step, last_step
        )
        for source_ids, target_ids in batches.as_numpy_iterator():
            update = self.trainer.update(
                source_ids,
                target_ids,
                self._num_micro_batches(source_ids, target_ids),
                self.stop,
            )
            if update is None:
                break
            self.progress.add(update)
            # First evaluate, so that what is saved knows of it.
            if self.trainer.step % self._evaluation_steps == 0:
                self.evaluate()
            if self._save_is_due():
                self.save()
            if self._has_lost_patience():
                break
            if self.trainer.has_other_workers and update.stops > 0:
                self.stop.signal = self.stop.signal or int(signal.SIGTERM)
                break
        self.progress.flush()
        if self.trainer.step > self.saved_step:
            self.save()
        if self.stop.signal:
            logging.info("Stopped; the same command goes on from here.")

    def _num_micro_batches(self, source_ids, target_ids):
        replicas = self.trainer.strategy.num_replicas_in_sync
        tokens = max(source_ids.size, target_ids.size) / replicas
        return math.ceil(tokens / self.micro_batch_tokens)

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

    def save(self):
        """Writes a checkpoint, if this process is the chief."""
        self.progress.flush()
        if not self.trainer.weights_are_finite():
            raise InputError(not_finite("the weights are", self.trainer))
        if self.is_chief:
            path = self.directory.checkpoints / f"step-{self.trainer.step}"
            checkpoints.write(path, self._tensors())
            keep = self.options.keep_last or max(2, self.hparams.average_last)
            checkpoints.prune(self.directory.checkpoints, keep)
            logging.info("Saved %s.", path)
        self.saved_at, self.saved_step = time.monotonic(), self.trainer.step

    def _tensors(self):
        return self.trainer.tensors() | {
            "best_bleu": np.float64(self.best_bleu),
            "evaluations_without_gain": np.int64(self.evaluations_without_gain),
        }

    def evaluate(self):
        """Logs the dev set's perplexity and BLEU; keeps the best model."""
        self.progress.flush()
        if self.is_chief and self.text.get("dev"):
            with self.progress.paused():
                self._evaluate()
        self.evaluations_without_gain = self.trainer.from_chief(
            self.evaluations_without_gain
        )

    def _evaluate(self):
        if self._evaluator is None:
            self._evaluator = _DevEvaluator(
                self.trainer.model, self.vocabulary, self.text["dev"]
            )
        scores = self._evaluator(self.stop)
        if scores is None:
            return
        token_scores, bleu = scores
        step = self.trainer.step
        logging.info(
            "Step %d: dev perplexity %.3f, dev BLEU %.2f",
            *(step, token_scores.perplexity, bleu),
        )
        with self.writer.as_default(step=step):
            tf.summary.scalar("dev/perplexity", token_scores.perplexity)
            tf.summary.scalar("dev/bleu", bleu)
        self.evaluations_without_gain += 1
        if bleu > self.best_bleu:
            self.best_bleu, self.evaluations_without_gain = bleu, 0
            checkpoints.write(
                self.directory.best / f"step-{step}", self._tensors()
            )
            checkpoints.prune(self.directory.best, 1)

    def _has_lost_patience(self):
        patience = self.options.patience
        if patience is None or self.evaluations_without_gain < patience:
            return False
        logging.info(
            "No better dev BLEU in %d evaluations: stopping at step %d.",
            self.evaluations_without_gain,
            self.trainer.step,
        )
        return True

    def report(self):
        """Prints the final scores and a few translations, if it is the chief.

        The model is the average of the last checkpoints, as in the paper.
        """
        if not self.is_chief or not self.text:
            return
        kept = len(checkpoints.paths(self.directory.checkpoints))
        count = min(kept, self.hparams.average_last)
        translator = translation.Translator(
            self.directory.path, average_last=count, xla=False
        )
        print(f"Model: {translator.description}")
        for split, pairs in self.text.items():
            sources, references = zip(*pairs, strict=True)
            translations = translator(sources)
            scores = evaluation.score_text(translations, references)
            print(f"{split} BLEU {scores.bleu:.2f} ({scores.bleu_signature})")
        for n in range(min(_LINES_SHOWN, len(sources))):
            print(
                f"\n  source       {sources[n]}\n  reference    {references[n]}"
                f"\n  translation  {translations[n]}"
            )


class _DevEvaluator:
    """Scores the model in training on the dev set."""

    def __init__(self, model, vocabulary, pairs):
        self.sources, self.references = map(list, zip(*pairs, strict=True))
        token_pairs = batching.pairs_in_memory(
            vocabulary.encode(self.sources), vocabulary.encode(self.references)
        )
        self.token_scorer = evaluation.TokenScorer(model, token_pairs)
        self.translator = translation.LineTranslator(
            model,
            vocabulary,
            translation.SearchOptions.of(model.hparams),
            xla=False,
        )

    def __call__(self, stop):
        """Returns (TokenScores, BLEU) of the weights, or None if stopped."""
        translations = []
        for best, *_ in self.translator.stream(self.sources, _LINES_AT_ONCE):
            if stop():
                return None
            translations.append(best.text)
        scores = evaluation.score_text(translations, self.references)
        return self.token_scorer(), scores.bleu


def _warm_start(path):
    """Returns (description, tensors) of a model directory or a checkpoint."""
    if pathlib.Path(path).is_dir():
        return model_directory.ModelDirectory(path).checkpoint_tensors()
    return path, checkpoints.read(path)
