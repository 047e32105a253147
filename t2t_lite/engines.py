"""Which program searches for translations. One is imported when it is used."""

import os
from typing import TYPE_CHECKING, Any

from t2t_lite.errors import require_extra
from t2t_lite.hparams import HParams

if TYPE_CHECKING:
    from t2t_lite.decoding.line_predictor import LinePredictor

NAMES = ("tensorflow", "ctranslate2")


def checked_hparams(
    engine: str, model_dir: str | os.PathLike, **search: Any
) -> HParams:
    """Returns the HParams of a model that can be searched so.

    Nothing is loaded that takes long.

    Args:
        engine: one of NAMES.
        model_dir: path of a model directory; for CTranslate2, also of a folder
            that bin/export wrote for it.
        **search: options of the search, by name.

    Raises:
        InputError: there is no such model, an option is out of its range, or
            the engine is not installed.
    """
    from t2t_lite.decoding import search_options

    if engine == "tensorflow":
        return search_options.checked_hparams(model_dir, **search)
    require_extra("ctranslate2", "ctranslate2")
    from t2t_lite.formats import ctranslate2

    hparams = ctranslate2.read_hparams(model_dir)
    search_options.SearchOptions.from_hparams(hparams, **search)
    return hparams


def open_model(
    engine: str,
    model_dir: str | os.PathLike,
    quantization: str | None = None,
    **options: Any,
) -> "LinePredictor":
    """Returns the Translator or the Parser of a model directory.

    Args:
        engine: one of NAMES.
        model_dir: that of `checked_hparams`.
        quantization: what CTranslate2 keeps weights in; None for float32.
        **options: those of a Translator or a Parser; None for its default.

    Raises:
        InputError: there is no such model, or an option is wrong.
    """
    if engine == "tensorflow":
        from t2t_lite import tasks

        return tasks.open_model(model_dir, **options)
    from t2t_lite.formats import ctranslate2_engine

    given = {k: v for k, v in options.items() if v is not None}
    return ctranslate2_engine.open_translator(
        model_dir, quantization=quantization, **given
    )
