"""What a task is: everything that translation and parsing do not share.

A new task is a class with these methods, a line in `tasks`, and its name among
the choices of `HParams.task`.
"""

import abc
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from t2t_lite.hparams import HParams

if TYPE_CHECKING:
    from t2t_lite.decoding.line_predictor import LinePredictor
    from t2t_lite.decoding.search import SearchOptions
    from t2t_lite.evaluation.scores import Score
    from t2t_lite.hardware import Hardware
    from t2t_lite.model.transformer import Transformer
    from t2t_lite.storage.model_directory import ModelDirectory
    from t2t_lite.text.vocabulary import FlatIds, Vocabulary

ReadPairs = Callable[[], Iterable[tuple[str, str]]]


class Task(abc.ABC):
    """A task: lines to lines, how they are learned, and how good they are.

    primary_score: the key, among `scores`, of the score that decides which
        model is best.
    targets_are_text: bool, whether a vocabulary tokenizes targets as it does
        sources, so that their subwords can be sampled.
    """

    primary_score: str
    targets_are_text: bool = True

    @abc.abstractmethod
    def check_hparams(self, hparams: HParams) -> None:
        """Raises InputError if settings do not fit this task."""

    @abc.abstractmethod
    def check_pair(self, source: str, target: str) -> tuple[str, str]:
        """Returns a pair in the form that it is learned from.

        Raises:
            InputError: it cannot be learned from.
        """

    def checked(
        self, splits: Mapping[str, Iterable[tuple[str, str]]]
    ) -> dict[str, list[tuple[str, str]]]:
        """Returns the pairs of splits, each as `check_pair` gives it."""
        return {
            name: [self.check_pair(*pair) for pair in pairs]
            for name, pairs in splits.items()
        }

    @abc.abstractmethod
    def learn_vocabulary(
        self,
        read_pairs: ReadPairs,
        kind: str,
        size: int,
        reserved: Sequence[str] = (),
    ) -> "Vocabulary":
        """Returns the Vocabulary learned from both sides of a corpus.

        Args:
            read_pairs: a function; each call reads the (source, target) pairs.
            kind: "bpe" or "unigram".
            size: int, V.
            reserved: words, str, each of which is one id.

        Raises:
            InputError: the corpus does not give such a vocabulary.
        """

    @abc.abstractmethod
    def check_vocabulary(
        self, vocabulary: "Vocabulary", read_pairs: ReadPairs | None = None
    ) -> None:
        """Raises InputError if a vocabulary does not fit this task.

        Args:
            vocabulary: Vocabulary.
            read_pairs: gives the training pairs, if the vocabulary may have
                been learned from others: it is refused if it lacks something
                that they need.
        """

    @abc.abstractmethod
    def num_target_ids(self, vocabulary: "Vocabulary") -> int:
        """Returns V of the logits: the ids of targets are below it."""

    @abc.abstractmethod
    def encode_targets(
        self, vocabulary: "Vocabulary", lines: Sequence[str]
    ) -> "FlatIds":
        """Returns the ids of target lines, EOS at the end of each."""

    @abc.abstractmethod
    def save_extras(
        self,
        directory: "ModelDirectory",
        hparams: HParams,
        vocabulary: "Vocabulary",
        read_pairs: ReadPairs,
    ) -> None:
        """Writes what the task keeps in a model directory beside the rest."""

    @abc.abstractmethod
    def open(
        self, model_dir: str | os.PathLike, **options: Any
    ) -> "LinePredictor":
        """Returns the model of a model directory, which takes and gives lines.

        Args:
            model_dir: path of a model directory.
            **options: those of Translator or Parser.
        """

    @abc.abstractmethod
    def from_model(
        self,
        model: "Transformer",
        directory: "ModelDirectory",
        options: "SearchOptions",
        hardware: "Hardware | None" = None,
    ) -> "LinePredictor":
        """Returns what `open` does, for a model in memory and without XLA.

        Args:
            model: Transformer.
            directory: ModelDirectory that has everything but the weights.
            options: SearchOptions.
            hardware: Hardware that the batches suit; that of this process when
                not given.
        """

    @abc.abstractmethod
    def scores(
        self,
        outputs: Sequence[str],
        references: Sequence[str],
        language: str | None = None,
        with_margins: bool = False,
    ) -> dict[str, "Score"]:
        """Returns the Scores of output lines, by their names in JSON.

        Args:
            outputs: list of str.
            references: list of str, equally long.
            language: of both; None if not known.
            with_margins: bool, whether to estimate the scores' margins.
        """

    def score(
        self, outputs: Sequence[str], references: Sequence[str]
    ) -> "Score":
        """Returns the Score that decides which model is best."""
        return self.scores(outputs, references)[self.primary_score]
