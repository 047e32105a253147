"""How to search. What is wrong is refused before TensorFlow is loaded."""

import math
import os
from typing import Any, NamedTuple

from t2t_lite.errors import InputError
from t2t_lite.hparams import HParams
from t2t_lite.storage import settings_file


class SearchOptions(NamedTuple):
    """How to search; the paper's section 6.1 has the defaults of HParams."""

    beam_width: int
    length_penalty: float
    max_extra_length: int  # tokens beyond those of the source
    nbest: int = 1  # how many translations of each line

    @classmethod
    def from_hparams(cls, hparams: HParams, **changes: Any) -> "SearchOptions":
        """Returns the options of an HParams, with those not None replaced.

        Raises:
            InputError: an option is out of its range.
        """
        defaults = {
            "beam_width": hparams.beam_width,
            "length_penalty": hparams.length_penalty,
            "max_extra_length": hparams.max_extra_length,
        }
        given = {k: v for k, v in changes.items() if v is not None}
        options = cls(**(defaults | given))
        options._check()
        return options

    def _check(self):
        for name, least in (
            ("beam_width", 1),
            ("length_penalty", 0),
            ("max_extra_length", 0),
            ("nbest", 1),
        ):
            received = getattr(self, name)
            if received < least:
                raise InputError(
                    f"{name} must be at least {least}; received "
                    f"{name}={received}"
                )
        if not math.isfinite(self.length_penalty):
            raise InputError(
                "length_penalty must be finite; received "
                f"length_penalty={self.length_penalty}"
            )
        if self.nbest > self.beam_width:
            raise InputError(
                f"nbest must be at most beam_width={self.beam_width}; "
                f"received nbest={self.nbest}"
            )


def checked_hparams(model_dir: str | os.PathLike, **changes: Any) -> HParams:
    """Returns the HParams of a model directory that can be searched so.

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
