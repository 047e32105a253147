"""The text that a run trains on and is scored on."""

import dataclasses
import functools
import itertools
from collections.abc import Callable, Iterable, Iterator

from t2t_lite.errors import InputError
from t2t_lite.evaluation.accuracy import ReadChecks
from t2t_lite.text import pharaoh, token_files
from t2t_lite.text.token_files import AnyPairs, LinkedPair, Pairs

_NOT_AS_MANY = (
    "the alignments must have a line for each training pair; they have {}"
)


@dataclasses.dataclass(frozen=True)
class TrainingText:
    """The sentence pairs of a run.

    Args:
        flags: the flags that name them, kept with the settings.
        readers: for "train", and for "dev" and "test" if there are any, a
            function; each call reads the (source, target) pairs.
        source_language: ISO 639-1; None if not known.
        corpora: the readers of the corpora that "train" is made of, if they
            have weights.
        weights: how often pairs of each corpus are drawn, in proportion; empty
            if all are drawn equally often.
        read_checks: a function that reads named lists of sentences, of which
            the report counts the right ones.
        alignments: a function; each call reads the links of the words of each
            training pair, as lines. None if they are not learned from.
    """

    flags: dict[str, str]
    readers: dict[str, Callable[[], Pairs]]
    source_language: str | None = None
    corpora: tuple[Callable[[], Pairs], ...] = ()
    weights: tuple[float, ...] = ()
    read_checks: ReadChecks = dict
    alignments: Callable[[], Iterable[str]] | None = None

    def read_corpora(self) -> list[AnyPairs]:
        """Returns the training pairs, by corpus if corpora have weights.

        They include their links, if words are aligned. Read one corpus after
        the other.
        """
        corpora = self._read_unlinked()
        if self.alignments is None:
            return corpora
        lines = iter(self.alignments())
        last = len(corpora) - 1
        return [
            _linked(pairs, lines, is_last=n == last)
            for n, pairs in enumerate(corpora)
        ]

    def _read_unlinked(self) -> list[Pairs]:
        readers = self.corpora if self.weights else [self.readers["train"]]
        return [reader() for reader in readers]

    def check_alignments(self) -> None:
        """Reads the links of all training pairs.

        Raises:
            InputError: there is not one line for each pair, or a line links
                words that its pair does not have.
        """
        pairs = itertools.chain.from_iterable(self._read_unlinked())
        rows = itertools.zip_longest(pairs, self.alignments())
        for number, (pair, line) in enumerate(rows, start=1):
            if line is None:
                raise InputError(_NOT_AS_MANY.format("fewer"))
            if pair is None:
                raise InputError(_NOT_AS_MANY.format("more"))
            try:
                pharaoh.require_links_in_range(pharaoh.parse(line), pair)
            except InputError as error:
                raise InputError(
                    f"the alignments, line {number}: {error}"
                ) from None

    def checked(
        self, check: Callable[[str, str], tuple[str, str]]
    ) -> "TrainingText":
        """Returns this text with check(source, target) for each pair."""
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
        """Returns the pairs of "dev" and "test", if there are any.

        Raises:
            InputError: there is such text, but it is empty.
        """
        pairs = {
            split: list(self.readers[split]())
            for split in ("dev", "test")
            if split in self.readers
        }
        for split, split_pairs in pairs.items():
            token_files.require_pairs(split, split_pairs)
        return pairs


def _linked(
    pairs: Pairs, lines: Iterator[str], is_last: bool
) -> Iterator[LinkedPair]:
    """Yields each pair with its line of links.

    Args:
        pairs: those of one corpus.
        lines: those of this corpus and the later ones.
        is_last: whether it is the last corpus.

    Raises:
        InputError: there are fewer or more lines than pairs.
    """
    for pair in pairs:
        line = next(lines, None)
        if line is None:
            raise InputError(_NOT_AS_MANY.format("fewer"))
        yield LinkedPair(*pair, line)
    if is_last and next(lines, None) is not None:
        raise InputError(_NOT_AS_MANY.format("more"))


def _checked_pairs(reader, check) -> Iterator[tuple[str, str]]:
    return (check(*pair) for pair in reader())
