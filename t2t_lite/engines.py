"""The programs that search for translations, each imported when it is used."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from t2t_lite.errors import require, require_extra
from t2t_lite.hparams import HParams
from t2t_lite.storage import checkpoint_files, settings_file
from t2t_lite.translation.members import Paths, members_of, require_together

if TYPE_CHECKING:
    from t2t_lite.decoding.line_predictor import LinePredictor

NAMES = ("tensorflow", "ctranslate2")


def checked_hparams(
    engine: str,
    model_dir: Paths,
    checkpoint: str | Sequence[str] = "last",
    average_last: int = 1,
    **search: Any,
) -> HParams:
    """Returns the HParams of a model, if it can be searched this way.

    If several models translate together, they are the first one's. Nothing
    that takes long is loaded.

    Args:
        engine: one of NAMES.
        model_dir: path of a model directory, or a list of them; for
            CTranslate2, also of a folder that bin/export wrote for it.
        checkpoint: which of its checkpoints, or a list of them.
        average_last: if above 1, use the mean of that many of the last ones.
        **search: options of the search, by name.

    Raises:
        InputError: there is no such model or checkpoint, an option is out of
            range, or the engine is not installed or cannot search with several
            models.
    """
    from t2t_lite.decoding import search_options

    members = members_of(model_dir, checkpoint)
    if engine == "tensorflow":
        require_together(members)
        first, *others = members
        hparams = search_options.checked_hparams(*first, average_last, **search)
        for each in others:
            checkpoint_files.require(*each, average_last)
        return hparams
    rule = "CTranslate2 translates with one model: give one --model_dir and one"
    require(f"{rule} --checkpoint", len(members) == 1, models=len(members))
    require_extra("ctranslate2", "ctranslate2")
    from t2t_lite.formats import ctranslate2

    (member,) = members
    hparams = ctranslate2.read_hparams(member.model_dir)
    if not ctranslate2.is_written(member.model_dir):
        settings_file.require_task(member.model_dir, "translation")
        checkpoint_files.require(*member, average_last)
    search_options.SearchOptions.from_hparams(hparams, **search)
    return hparams


def open_model(
    engine: str,
    model_dir: Paths,
    checkpoint: str | Sequence[str] = "last",
    quantization: str | None = None,
    **options: Any,
) -> "LinePredictor":
    """Returns the Translator or the Parser of a model directory.

    Args:
        engine: one of NAMES.
        model_dir: that of `checked_hparams`.
        checkpoint: that of `checked_hparams`.
        quantization: how CTranslate2 stores weights; None for float32.
        **options: those of a Translator or a Parser; None for the default.

    Raises:
        InputError: there is no such model, or an option is wrong.
    """
    if engine == "tensorflow":
        from t2t_lite import tasks

        return tasks.open_model(model_dir, checkpoint, **options)
    from t2t_lite.formats import ctranslate2_engine

    (member,) = members_of(model_dir, checkpoint)
    given = {k: v for k, v in options.items() if v is not None}
    return ctranslate2_engine.open_translator(
        member.model_dir,
        checkpoint=member.checkpoint,
        quantization=quantization,
        **given,
    )
