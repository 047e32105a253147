"""The text that a run trains on and is scored on."""

import dataclasses
import functools
from collections.abc import Callable, Iterator

from t2t_lite.evaluation.accuracy import ReadChecks
from t2t_lite.text import token_files
from t2t_lite.text.token_files import Pairs


@dataclasses.dataclass(frozen=True)
class TrainingText:
    """The sentence pairs of a run.

    Args:
        flags: the flags that name them, kept with the settings.
        readers: for "train", and for "dev" and "test" if there are any, a
            function; each call reads the (source, target) pairs.
        source_language: ISO 639-1; None if not known.
        corpora: the readers of the corpora that "train" is made of, where they
            have weights.
        weights: how often pairs of each corpus are drawn, in proportion; none
            where all are drawn equally often.
        read_checks: a function that reads the lists of sentences, by name, of
            which the report counts the right ones.
    """

    flags: dict[str, str]
    readers: dict[str, Callable[[], Pairs]]
    source_language: str | None = None
    corpora: tuple[Callable[[], Pairs], ...] = ()
    weights: tuple[float, ...] = ()
    read_checks: ReadChecks = dict

    def read_corpora(self) -> list[Pairs]:
        """Returns the training pairs of each corpus that has a weight."""
        readers = self.corpora if self.weights else [self.readers["train"]]
        return [reader() for reader in readers]

    def checked(
        self, check: Callable[[str, str], tuple[str, str]]
    ) -> "TrainingText":
        """Returns the text whose pairs are check(source, target) of these."""
        readers = {
            split: functools.partial(_checked_pairs, reader, check)
            for split, reader in self.readers.items()
        }
        corpora = tuple(
            functools.partial(_checked_pairs, reader, check)
            for reader in self.corpora
        )
        return dataclasses.replace(self, readers=readers, corpora=corpora)

    def held_out(self) -> dict[str, list[tuple[str, str]]]:
        """Returns the pairs of "dev" and "test", where there are any.

        Raises:
            InputError: there is such text, and it is empty.
        """
        pairs = {
            split: list(self.readers[split]())
            for split in ("dev", "test")
            if split in self.readers
        }
        for split, of_split in pairs.items():
            token_files.require_pairs(split, of_split)
        return pairs


def _checked_pairs(reader, check) -> Iterator[tuple[str, str]]:
    return (check(*pair) for pair in reader())
