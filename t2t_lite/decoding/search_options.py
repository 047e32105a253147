"""How to search. What is wrong is refused before TensorFlow is loaded."""

import dataclasses
import difflib
import inspect
import numbers
import os
from typing import Any, NamedTuple

from t2t_lite.errors import require, require_int
from t2t_lite.hparams import HParams, length_penalty_rules
from t2t_lite.storage import settings_file


class SearchOptions(NamedTuple):
    """How to search; the paper's section 6.1 has the defaults of HParams."""

    beam_width: int
    length_penalty: float
    max_extra_length: int  # tokens beyond those of the source
    nbest: int = 1  # how many translations of each line
    tokens_at_once: int | None = None  # of the source; None: by the hardware

    @classmethod
    def from_hparams(
        cls, hparams: HParams, given_to: type | None = None, /, **changes: Any
    ) -> "SearchOptions":
        """Returns the options of an HParams, with those not None replaced.

        Args:
            hparams: HParams.
            given_to: the class whose last argument the changes are; the message
                on one that there is not names its others too.
            **changes: by name.

        Raises:
            InputError: an option is out of its range.
            TypeError: there is no such option; all there are are named.
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
        options = cls(**(defaults | given))
        options.check()
        return options

    def check(self) -> None:
        """Raises InputError where an option is out of its range."""
        require_int(1, beam_width=self.beam_width, nbest=self.nbest)
        require_int(0, max_extra_length=self.max_extra_length)
        if self.tokens_at_once is not None:
            require_int(1, tokens_at_once=self.tokens_at_once)
        alpha = self.length_penalty
        is_bool = isinstance(alpha, bool)
        is_number = isinstance(alpha, numbers.Real) and not is_bool
        given = {"length_penalty": alpha}
        require("length_penalty must be a number", is_number, **given)
        for rule, holds in length_penalty_rules(alpha):
            require(rule, holds, **given)
        require(
            f"nbest must be at most beam_width={self.beam_width}",
            self.nbest <= self.beam_width,
            nbest=self.nbest,
        )


def _unknown(name, fields, given_to):
    """Returns what to say of an option that there is not."""
    others = []
    if given_to is not None:  # All but the model_dir, and the options.
        others = [*inspect.signature(given_to).parameters][1:-1]
    names = [*others, *fields]
    near = difflib.get_close_matches(name, names, n=1, cutoff=0.55)
    hint = f" (did you mean {near[0]!r}?)" if near else ""
    return f"unknown option {name!r}{hint}: the options are {', '.join(names)}"


def checked_hparams(model_dir: str | os.PathLike, **changes: Any) -> HParams:
    """Returns the HParams of a model directory, once it can be searched so.

    Args:
        model_dir: path of a model directory.
        **changes: those of `SearchOptions.from_hparams`.

    Raises:
        InputError: the directory holds no run, or an option is out of its
            range.
    """
    hparams = settings_file.read(model_dir)["hparams"]
    SearchOptions.from_hparams(hparams, **changes)
    return hparams


def replaced(hparams: HParams, **changes: Any) -> HParams:
    """Returns HParams with other options of the search.

    Args:
        hparams: HParams.
        **changes: those of `SearchOptions.from_hparams`; None for none. What
            no HParams have, such as `tokens_at_once`, is left out.
    """
    names = {field.name for field in dataclasses.fields(hparams)}
    given = {k: v for k, v in changes.items() if v is not None and k in names}
    return dataclasses.replace(hparams, **given)
