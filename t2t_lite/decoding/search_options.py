"""How to search. Bad options are refused before TensorFlow is loaded."""

import dataclasses
import difflib
import inspect
import math
import numbers
import os
import re
import reprlib
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

from t2t_lite.errors import require, require_int, require_optional_bool
from t2t_lite.hparams import HParams, length_penalty_rules
from t2t_lite.storage import checkpoint_files, settings_file

_WORDS = ("suppress", "suppress_pieces")
_EDGE = r"(?!\B\w)"  # Anywhere but between two letters.
_LONGEST_NGRAM = 100
_UNSAMPLED = (("seed", 0), ("temperature", 1))  # The defaults.
_ALWAYS = ("beam_width", "length_penalty", "max_extra_length", "nbest")
# What steers a search besides the beam, and is off by default.
STEERING = (
    "min_length",
    "no_repeat_ngram_size",
    *_WORDS,
    "sample_top_k",
    "sample_top_p",
)
# What a Translator does only with lines of text, besides the search.
LINE_ONLY_OPTIONS = ("alternatives", "keep", "alignments", "glossary")
# What a translation may keep as its source has it.
KEPT = ("tags", "urls", "placeholders", "quantities")


class SearchOptions(NamedTuple):
    """How to search; the paper's section 6.1 has the defaults of HParams."""

    beam_width: int
    length_penalty: float
    max_extra_length: int  # tokens beyond those of the source
    nbest: int = 1  # how many translations of each line
    tokens_at_once: int | None = None  # of the source; None: by the hardware
    min_length: int = 0  # tokens before the end, of each sentence
    no_repeat_ngram_size: int = 0  # no run of this length twice; 0: no limit
    suppress: tuple[str, ...] = ()  # words that must not appear
    suppress_pieces: tuple[str, ...] = ()  # tokens that must not, as U+2581a
    # Draws `nbest` samples instead of searching: each token from this many of
    # the likeliest, or from those with this share of the probability; 0: no
    # sampling.
    sample_top_k: int = 0
    sample_top_p: float = 0.0
    temperature: float = 1.0
    seed: int = 0
    # How many next words after a prefix, in place of `nbest`; 0: none.
    alternatives: int = 0
    # (term of the source, its translation), those of a Glossary.
    glossary: tuple[tuple[str, str], ...] = ()
    keep: tuple[str, ...] = ()  # of KEPT
    alignments: bool = False  # whether translations come with links of words

    @classmethod
    def from_hparams(
        cls, hparams: HParams, given_to: type | None = None, /, **changes: Any
    ) -> "SearchOptions":
        """Returns the options of an HParams, with those not None replaced.

        Args:
            hparams: HParams.
            given_to: the class whose last argument the changes are; the message
                on an unknown option names its other arguments too.
            **changes: by name.

        Raises:
            InputError: an option is out of its range.
            TypeError: an option does not exist; the message names those that
                do.
        """
        for name in changes:
            if name not in cls._fields:
                raise TypeError(_unknown(name, cls._fields, given_to))
        defaults = {
            "beam_width": hparams.beam_width,
            "length_penalty": hparams.length_penalty,
            "max_extra_length": hparams.max_extra_length,
        }
        given = {k: v for k, v in changes.items() if v is not None}
        for name in (*_WORDS, "keep"):
            if isinstance(given.get(name), list):
                given[name] = tuple(given[name])
        if "glossary" in given:
            given["glossary"] = _pairs(given["glossary"])
        options = cls(**(defaults | given))
        if options.samples:  # There is no beam, only a row for each sample.
            rule = "there is no beam in sampling: leave beam_width out"
            width = given.get("beam_width")
            require(rule, width is None, beam_width=width)
            options = options._replace(beam_width=options.nbest)
        options.check()
        return options

    @property
    def results_per_line(self) -> int:
        """How many translations each line gets."""
        return self.alternatives or self.nbest

    def without_sampling(self, hparams: HParams) -> "SearchOptions":
        """Returns these options, with a search in place of any sampling."""
        if not self.samples:
            return self
        names = ("sample_top_k", "sample_top_p", "temperature", "seed", "nbest")
        defaults = {name: self._field_defaults[name] for name in names}
        return self._replace(beam_width=hparams.beam_width, **defaults)

    @property
    def steering(self) -> dict[str, Any]:
        """The options of STEERING and LINE_ONLY_OPTIONS that are on."""
        return {
            name: self._describe(name)
            for name in (*STEERING, *LINE_ONLY_OPTIONS)
            if getattr(self, name)
        }

    @property
    def chosen(self) -> dict[str, Any]:
        """All options except those that are off."""
        return {
            name: self._describe(name)
            for name, value in self._asdict().items()
            if name in _ALWAYS or value != self._field_defaults.get(name)
        }

    def _describe(self, name: str) -> Any:
        """Returns the value of an option, or only the size of a glossary."""
        if name == "glossary":
            return f"{len(self.glossary)} terms"
        return getattr(self, name)

    @property
    def samples(self) -> bool:
        """Whether translations are drawn at random."""
        return bool(self.sample_top_k or self.sample_top_p)

    def check(self) -> None:
        """Raises InputError if an option is out of its range."""
        require_int(1, beam_width=self.beam_width, nbest=self.nbest)
        require_int(
            0,
            max_extra_length=self.max_extra_length,
            min_length=self.min_length,
            no_repeat_ngram_size=self.no_repeat_ngram_size,
            sample_top_k=self.sample_top_k,
            seed=self.seed,
            alternatives=self.alternatives,
        )
        n = self.no_repeat_ngram_size
        rule = f"no_repeat_ngram_size must be at most {_LONGEST_NGRAM}"
        require(rule, n <= _LONGEST_NGRAM, no_repeat_ngram_size=n)
        _check_sampling(self)
        require_optional_bool(alignments=self.alignments)
        for name in (*_WORDS, "keep"):
            words = getattr(self, name)
            is_tuple = isinstance(words, tuple)
            holds = is_tuple and all(isinstance(w, str) for w in words)
            require(f"{name} must be a list of str", holds, **{name: words})
        if self.tokens_at_once is not None:
            require_int(1, tokens_at_once=self.tokens_at_once)
        alpha = self.length_penalty
        given = {"length_penalty": alpha}
        require("length_penalty must be a number", _is_number(alpha), **given)
        for rule, holds in length_penalty_rules(alpha):
            require(rule, holds, **given)
        require(
            f"nbest must be at most beam_width={self.beam_width}",
            self.nbest <= self.beam_width,
            nbest=self.nbest,
        )
        if self.alternatives:
            rule = "alternatives cannot be combined with nbest or sampling"
            holds = self.nbest == 1 and not self.samples
            given = {"nbest": self.nbest, **self.steering}
            require(rule, holds, **given)
        if self.glossary:
            rule = "a glossary cannot be combined with sampling or alternatives"
            holds = not (self.samples or self.alternatives)
            require(rule, holds, **self.steering)
            _check_contradiction(self.glossary, self.suppress)
        if self.keep:
            rule = f"keep may hold only {', '.join(KEPT)}"
            require(rule, {*self.keep} <= {*KEPT}, keep=self.keep)
            rule = "keep cannot be combined with sampling or alternatives"
            holds = not (self.samples or self.alternatives)
            require(rule, holds, **self.steering)
            rule = "keep cannot be combined with alignments"
            require(rule, not self.alignments, **self.steering)


def _check_sampling(options: SearchOptions) -> None:
    """Raises InputError if an option of sampling is out of its range."""
    top_p, temperature = options.sample_top_p, options.temperature
    rule = "sample_top_p must be a number from 0 to 1"
    holds = _is_number(top_p) and 0 <= top_p <= 1
    require(rule, holds, sample_top_p=top_p)
    holds = _is_number(temperature) and 0 < temperature < math.inf
    rule = "temperature must be a number above 0"
    require(rule, holds, temperature=temperature)
    given = {"seed": options.seed, "temperature": temperature}
    given = {n: given[n] for n, default in _UNSAMPLED if given[n] != default}
    rule = "seed and temperature need sample_top_k or sample_top_p"
    require(rule, options.samples or not given, **given)


def _check_contradiction(
    glossary: tuple[tuple[str, str], ...], suppress: tuple[str, ...]
) -> None:
    """Raises InputError if a translation of a glossary is suppressed."""
    words = [re.escape(word) for word in suppress if word]
    if not words:
        return
    suppressed = re.compile(f"{_EDGE}(?:{'|'.join(words)}){_EDGE}")
    rule = "a suppressed word must not be in a glossary translation"
    for _, target in glossary:
        found = suppressed.findall(" ".join(target.split()))
        require(rule, not found, suppress=found, translation=target)


def _pairs(glossary: Any) -> tuple[tuple[str, str], ...]:
    """Returns the pairs of a glossary, a mapping or an iterable of pairs.

    Raises:
        InputError: it is neither, or does not hold str.
    """
    pairs = glossary.items() if isinstance(glossary, Mapping) else glossary
    is_iterable = isinstance(pairs, Iterable) and not isinstance(pairs, str)
    pairs = tuple(pairs) if is_iterable else (None,)
    require(
        "glossary must be a dict of str, or pairs of str",
        all(
            isinstance(pair, list | tuple)
            and len(pair) == 2
            and all(isinstance(term, str) for term in pair)
            for pair in pairs
        ),
        glossary=reprlib.repr(glossary),
    )
    return tuple(map(tuple, pairs))


def _is_number(value: Any) -> bool:
    return isinstance(value, numbers.Real) and not isinstance(value, bool)


def _unknown(name, fields, given_to):
    """Returns the message on an option that does not exist."""
    others = []
    if given_to is not None:  # All but the model_dir and the options.
        others = [*inspect.signature(given_to).parameters][1:-1]
    names = [*others, *fields]
    near = difflib.get_close_matches(name, names, n=1, cutoff=0.55)
    hint = f" (did you mean {near[0]!r}?)" if near else ""
    return f"unknown option {name!r}{hint}: the options are {', '.join(names)}"


def checked_hparams(
    model_dir: str | os.PathLike,
    checkpoint: str = "last",
    average_last: int = 1,
    trained_for: str | None = None,
    **changes: Any,
) -> HParams:
    """Returns the HParams of a model directory, if it can be searched so.

    Args:
        model_dir: path of a model directory.
        checkpoint: that of `ModelDirectory.weights`.
        average_last: that of `ModelDirectory.weights`.
        trained_for: name of the task that it must be for; None for any.
        **changes: those of `SearchOptions.from_hparams`.

    Raises:
        InputError: the directory holds no run, one for another task, or no such
            checkpoint, or an option is out of its range.
    """
    hparams = settings_file.read(model_dir)["hparams"]
    if trained_for is not None:
        settings_file.require_task(model_dir, trained_for)
    SearchOptions.from_hparams(hparams, **changes)
    checkpoint_files.require(model_dir, checkpoint, average_last)
    return hparams


def replaced(hparams: HParams, **changes: Any) -> HParams:
    """Returns HParams with other options of the search.

    Args:
        hparams: HParams.
        **changes: those of `SearchOptions.from_hparams`; None for none. Options
            that HParams do not have, such as `tokens_at_once`, are left out.
    """
    names = {field.name for field in dataclasses.fields(hparams)}
    given = {k: v for k, v in changes.items() if v is not None and k in names}
    return dataclasses.replace(hparams, **given)
