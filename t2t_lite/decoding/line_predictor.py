"""What translators and parsers share: lines of text in, a line out for each."""

import abc
import collections
import hashlib
import itertools
import re
from collections.abc import Callable, Iterable, Iterator
from concurrent import futures
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from t2t_lite.errors import (
    InputError,
    require,
    require_int,
    require_optional_bool,
)
from t2t_lite.text import pharaoh
from t2t_lite.text.pharaoh import Link
from t2t_lite.text.vocabulary import Vocabulary, as_list, require_lines

if TYPE_CHECKING:
    from t2t_lite.decoding.ensemble import Ensemble
    from t2t_lite.decoding.search_options import SearchOptions
    from t2t_lite.model.transformer import Transformer

_LINES_AT_ONCE = 4096
_LINE_BREAK = re.compile("\r\n?|\n")  # Only "\n" to us, "\r" to others too.


class Translation(NamedTuple):
    """What a task gives for one line, such as its translation."""

    text: str
    score: float  # log probability in nats / length penalty


class AlignedTranslation(NamedTuple):
    """A Translation, and which of its words stand for which of its source."""

    text: str
    score: float
    links: tuple[Link, ...]  # between words, those of str.split


class LinePredictor(abc.ABC):
    """Predicts a line of text from each line of text.

    Args:
        vocabulary: Vocabulary.
        options: SearchOptions.
        model: Transformer, or an Ensemble; None if there is none in memory.
        description: str, where the weights are from.
        num_devices: int, how many devices search side by side.
    """

    _accepted = "a str or a list of str"
    _takes_prefixes = False

    def __init__(
        self,
        vocabulary: Vocabulary,
        options: "SearchOptions",
        *,
        model: "Transformer | Ensemble | None" = None,
        description: str = "",
        num_devices: int = 1,
    ):
        self.vocabulary, self.options = vocabulary, options
        self.model, self.description = model, description
        self._num_devices = num_devices
        # How much training the weights took, where that is known.
        self.training_record: dict[str, float] = {}

    @abc.abstractmethod
    def translate(
        self, lines: list[str], first_line: int = 1
    ) -> list[list[Translation]]:
        """Returns for each line a list of `nbest` Translations, best first.

        Args:
            lines: list of str.
            first_line: int, the number of the first line in messages.
        """

    def sha256(self) -> str:
        """Returns the hash of all that shapes an output except the options.

        Raises:
            InputError: the model is that of an export, not in memory.
        """
        rule = (
            "sha256 needs a model in memory, such as one that Translator loads"
        )
        require(rule, self.model is not None, model=self.description)
        found = hashlib.sha256()
        for part in self._shaping():
            found.update(repr(part).encode())
        for weight in self.model.weights:
            found.update(weight.path.encode())
            found.update(np.ascontiguousarray(weight))
        return found.hexdigest()

    def _shaping(self) -> list[Any]:
        """Returns what shapes an output besides weights and options."""
        return [self.model.hparams, self.vocabulary.sha256]

    def stream(
        self,
        lines: Iterable[str],
        lines_at_once: int,
        first_line: int = 1,
        prefixes: Iterable[str] | None = None,
    ) -> Iterator[list[Translation]]:
        """Yields the list of Translations of each line, in order.

        Args:
            lines: iterable of str, read no further ahead than one block; with
                several devices, no further than a block for each and one more.
            lines_at_once: int, how many lines make a block: they are sorted by
                length and translated together.
            first_line: int, the number of the first line in messages.
            prefixes: iterable of str, what the translation of each line begins
                with; None for nothing.

        Raises:
            InputError: lines_at_once or first_line is not at least 1, there is
                not one prefix for each line, or this model takes none.
            TypeError: the lines are a str or a dict, or one is not a str.
        """
        require_int(1, lines_at_once=lines_at_once, first_line=first_line)
        require_lines(lines, "lines must be an iterable of str")
        if prefixes is not None:
            rule = "this model takes no prefixes"
            require(rule, self._takes_prefixes, model=self.description)
            require_lines(
                prefixes,
                "the prefixes of several lines must be an iterable of str",
            )
        return self._stream(
            lines, lines_at_once, first_line=first_line, prefixes=prefixes
        )

    def _stream(self, lines, lines_at_once, first_line, prefixes):
        blocks = _blocks(
            lines, lines_at_once, first_line=first_line, prefixes=prefixes
        )
        # A caller that gives one line at a time may wait for its translation.
        found = (
            itertools.starmap(self.translate, blocks)
            if self._num_devices == 1 or lines_at_once == 1
            else _side_by_side(self.translate, blocks, self._num_devices)
        )
        for translations in found:
            yield from translations

    def __call__(
        self,
        text: Any,
        *,
        with_scores: bool = False,
        prefix: str | list[str] | None = None,
    ) -> Any:
        """Returns the best translation of each text.

        Args:
            text: a str or a list of str.
            with_scores: bool, whether to return (translations, scores), the
                scores float32 (log probability in nats / length penalty).
            prefix: what the translation begins with; a str or a list of str, as
                `text` is. None for nothing.

        Returns:
            a str or a list of str, as `text` is.

        Raises:
            InputError: those of `stream`.
            TypeError: `text` is neither, or `prefix` is not as `text` is.
        """
        require_optional_bool(with_scores=with_scores)
        lines = self._lines(text)
        if isinstance(text, str) and prefix is not None:
            prefix = as_list([prefix], "the prefix of a str must be a str")
        found = self.stream(lines, _LINES_AT_ONCE, prefixes=prefix)
        best = [nbest[0] for nbest in found]
        translations = [translation.text for translation in best]
        scores = [translation.score for translation in best]
        if isinstance(text, str):
            translations, scores = translations[0], scores[0]
        return (translations, scores) if with_scores else translations

    def _lines(self, text: Any) -> list[str]:
        """Returns the lines that a call is given."""
        if isinstance(text, str):
            return [text]
        return as_list(text, f"text must be {self._accepted}")


def _blocks(lines, lines_at_once, first_line, prefixes=None):
    """Yields (lines, number of the first) of each block, and its prefixes."""
    lines, done = iter(lines), 0
    others = [] if prefixes is None else [iter(prefixes)]
    while block := list(itertools.islice(lines, lines_at_once)):
        beside = [list(itertools.islice(each, len(block))) for each in others]
        _require_as_many(block, beside, done)
        yield as_list(block, first=done), first_line + done, *beside
        done += len(block)
    _require_as_many([], [list(itertools.islice(o, 1)) for o in others], done)


def _require_as_many(block, beside, done):
    """Raises InputError if there are more lines, or more prefixes."""
    for prefixes in beside:
        if len(prefixes) != len(block):
            is_short = len(prefixes) < len(block)
            found = f"only {done + len(prefixes)}" if is_short else "more"
            raise InputError(
                "give one prefix for each line, blank for none; received "
                f"{found}"
            )


def _side_by_side(
    function: Callable, arguments: Iterable[tuple], num_threads: int
) -> Iterator[Any]:
    """Yields what a function returns for each tuple of arguments, in order.

    Up to `num_threads` are computed at a time, and one more waits.
    """
    with futures.ThreadPoolExecutor(num_threads) as pool:
        started = collections.deque()
        for each in arguments:
            started.append(pool.submit(function, *each))
            if len(started) > num_threads:
                yield started.popleft().result()
        while started:
            yield started.popleft().result()


def as_lines(
    translations: list[Translation] | list[AlignedTranslation],
    number: int | None = None,
    with_score: bool = False,
) -> str:
    r"""Returns the Translations of one line as text, a line for each.

    Links come after it, as " ||| 0-0 1-2".

    Args:
        translations: list of Translation or of AlignedTranslation.
        number: int, the number of the source line: gives "number ||| text |||
            score"; None for the bare text.
        with_score: bool, whether a score and a tab come before the bare text.

    >>> as_lines([Translation("ein Hund", -0.25)], number=12)
    '12 ||| ein Hund ||| -0.2500\n'
    """
    lines = []
    for each in translations:
        text = _LINE_BREAK.sub(" ", each.text)  # One line stays one line.
        if number is not None:
            text = f"{number} ||| {text} ||| {each.score:.4f}"
        elif with_score:
            text = f"{each.score:.4f}\t{text}"
        if isinstance(each, AlignedTranslation):
            text = f"{text} ||| {pharaoh.as_text(each.links)}"
        lines.append(f"{text}\n")
    return "".join(lines)
