"""Scores on the dev set during a run, and when they end it."""

import functools
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import tensorflow as tf
from absl import logging

from t2t_lite.decoding.search import SearchOptions
from t2t_lite.english import counted
from t2t_lite.evaluation.perplexity import TokenScorer, TokenScores
from t2t_lite.evaluation.scores import Score
from t2t_lite.hardware import Hardware
from t2t_lite.model.transformer import Transformer
from t2t_lite.optimization.strategies import value_from_chief
from t2t_lite.storage.model_directory import ModelDirectory
from t2t_lite.task import Task
from t2t_lite.text import token_files
from t2t_lite.training.options import RunOptions
from t2t_lite.training.summaries import Summaries

_LINES_AT_ONCE = 256  # Between two checks for a stop.
_WIDEST_BEAM = 4
_PAIRS_TRIED = 64


class DevState(NamedTuple):
    """What a run knows about its scores on dev: tensors of these names."""

    best_score: float = -1.0  # BLEU or F1, of all evaluations
    evaluations_without_gain: int = 0  # since the best score
    evaluated_step: int = 0  # of the last evaluation
    dev_sha256: str = ""  # of the dev text; "" if not known

    def after(self, step: int, score: float) -> "DevState":
        """Returns the state after the model of `step` updates got a score.

        >>> DevState().after(step=10, score=2.0).after(step=20, score=1.5)[:3]
        (2.0, 1, 20)
        """
        is_gain = score > self.best_score
        return self._replace(
            best_score=score if is_gain else self.best_score,
            evaluations_without_gain=(
                0 if is_gain else self.evaluations_without_gain + 1
            ),
            evaluated_step=step,
        )

    @classmethod
    def restored(cls, tensors: Mapping[str, Any]) -> "DevState":
        """Returns the state that `tensors` gave.

        Args:
            tensors: those of a checkpoint. Version 0.1.0 called the best score
                "best_bleu" at first, and did not keep `dev_sha256`.
        """
        best_score = tensors.get("best_score", tensors.get("best_bleu", -1.0))
        return cls(
            best_score=float(best_score),
            evaluations_without_gain=int(
                tensors.get("evaluations_without_gain", 0)
            ),
            evaluated_step=int(tensors.get("evaluated_step", 0)),
            dev_sha256=_text(tensors.get("dev_sha256", b"")),
        )

    def tensors(self) -> dict[str, np.generic]:
        """Returns what a checkpoint keeps."""
        return {
            "best_score": np.float64(self.best_score),
            "evaluations_without_gain": np.int64(self.evaluations_without_gain),
            "evaluated_step": np.int64(self.evaluated_step),
            "dev_sha256": np.bytes_(self.dev_sha256),
        }

    def copied_from_chief(self, strategy: tf.distribute.Strategy) -> "DevState":
        """Returns the state for all workers to stop after the same update."""
        # Only the chief needs the rest.
        return self._replace(
            evaluations_without_gain=int(
                value_from_chief(strategy, self.evaluations_without_gain)
            ),
            evaluated_step=int(value_from_chief(strategy, self.evaluated_step)),
        )


def _text(value: Any) -> str:
    """Returns the text of a checkpoint's tensor; "" if it is not text."""
    value = np.asarray(value)
    text = value.item() if value.size == 1 else b""
    return text.decode("ascii", "replace") if isinstance(text, bytes) else ""


class DevEvaluation:
    """Scores a model in training on dev, as often as the options say.

    Args:
        task: Task.
        model: Transformer.
        directory: ModelDirectory that has the rest of the model.
        pairs: (source, target) of the dev set; None if there is none.
        sha256: of the pairs; "" if there are none.
        options: RunOptions.
        summaries: Summaries.
        hardware: Hardware that the batches of a search suit; that of this
            process when not given.
    """

    def __init__(
        self,
        task: Task,
        model: Transformer,
        directory: ModelDirectory,
        pairs: Sequence[tuple[str, str]] | None,
        sha256: str,
        options: RunOptions,
        summaries: Summaries,
        hardware: Hardware | None = None,
    ):
        self.state = DevState(dev_sha256=sha256)
        self._make_scorer = functools.partial(
            _Scorer, task, model, directory, hardware=hardware
        )
        self._model = model
        self._pairs, self._options = pairs, options
        self._summaries = summaries
        self._scorer: _Scorer | None = None  # Created when needed.

    def is_due(self, step: int) -> bool:
        """Returns whether the model of `step` updates is to be scored."""
        # Also if a stop prevented the scoring when it was due.
        last_due_step = step - step % self._every_steps
        is_new = last_due_step > self.state.evaluated_step
        return self._pairs is not None and is_new

    @property
    def _every_steps(self) -> int:
        steps = self._model.hparams.steps
        return self._options.evaluate_every_steps or max(1, steps // 5)

    @property
    def num_due(self) -> int:
        """How often a whole run scores the model."""
        if self._pairs is None:
            return 0
        return self._model.hparams.steps // self._every_steps

    def trial_seconds(self) -> float:
        """Returns the seconds of an evaluation, judging by a part of dev.

        An untrained model does not end its outputs, so they are as long as they
        may be; those of a trained model take less time.
        """
        if self._pairs is None:
            return 0.0
        every = -(-len(self._pairs) // _PAIRS_TRIED)
        tried = self._pairs[::every]
        scorer = self._make_scorer(pairs=tried)
        start = time.perf_counter()
        scorer.scores(lambda: False)
        return (time.perf_counter() - start) / len(tried) * len(self._pairs)

    def resume(self, state: DevState, has_best: bool = True) -> None:
        """Continues from the state of an earlier process of the run.

        Scores on a different dev text do not count, and neither does that of a
        checkpoint that was lost.

        Args:
            state: DevState.
            has_best: whether the best checkpoint still exists.
        """
        now = self.state.dev_sha256
        is_lost = state.best_score >= 0 and not has_best
        if is_lost and self._pairs is not None:
            logging.warning(
                "The best checkpoint is no longer in best/: the best score and "
                "--patience start over."
            )
            return
        if self._pairs is None or state.dev_sha256 in ("", now):
            self.state = state._replace(dev_sha256=now or state.dev_sha256)
            return
        logging.warning(
            "The dev text has changed: its scores cannot be compared with "
            "earlier ones, so best/ and --patience start over."
        )

    def evaluate(self, step: int, should_stop: Callable[[], bool]) -> bool:
        """Logs the scores of the model; returns whether it is the best so far.

        Args:
            step: updates done.
            should_stop: once it returns True, the evaluation is given up.
        """
        if self._scorer is None:
            self._scorer = self._make_scorer(pairs=self._pairs)
        found = self._scorer.scores(should_stop)
        if found is None:
            return False
        token_scores, score = found
        logging.info(
            "Step %d: dev perplexity %.3f, dev %s %.2f",
            step,
            token_scores.perplexity,
            score.name,
            score.value,
        )
        self._summaries.write(
            step,
            {
                "dev/perplexity": token_scores.perplexity,
                f"dev/{score.name.lower()}": score.value,
            },
        )
        self.state = self.state.after(step, score.value)
        return self.state.evaluations_without_gain == 0

    def has_lost_patience(self, step: int) -> bool:
        """Returns whether too many evaluations brought no better score."""
        patience = self._options.patience
        evaluations = self.state.evaluations_without_gain
        if patience is None or evaluations < patience:
            return False
        logging.info(
            "No better score on dev in %s: stopping at step %d.",
            counted(evaluations, "evaluation"),
            step,
        )
        return True


class _Scorer:
    """Scores one model on one dev set, again and again."""

    def __init__(
        self,
        task: Task,
        model: Transformer,
        directory: ModelDirectory,
        pairs: Sequence[tuple[str, str]],
        hardware: Hardware | None,
    ):
        self._task = task
        self._sources = [source for source, _ in pairs]
        self._references = [target for _, target in pairs]
        vocabulary = directory.vocabulary()
        token_pairs = token_files.encode_pairs(
            pairs,
            vocabulary,
            functools.partial(task.encode_targets, vocabulary),
        )
        self._token_scorer = TokenScorer(model, token_pairs)
        # A wide beam, such as a parser's, takes too long to be used often.
        width = min(model.hparams.beam_width, _WIDEST_BEAM)
        options = SearchOptions.from_hparams(model.hparams, beam_width=width)
        self._translator = task.from_model(
            model, directory, options, hardware=hardware
        )

    def scores(
        self, should_stop: Callable[[], bool]
    ) -> tuple[TokenScores, Score] | None:
        """Returns the scores of the model as it is now, None if given up."""
        translations = []
        results = self._translator.stream(self._sources, _LINES_AT_ONCE)
        for best, *_ in results:
            if should_stop():
                return None
            translations.append(best.text)
        score = self._task.score(translations, self._references)
        return self._token_scorer(), score
