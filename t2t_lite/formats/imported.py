"""The model directory of a model from another program."""

import os

from t2t_lite import files
from t2t_lite.formats.portable import PortableModel


def write(model: PortableModel, model_dir: str | os.PathLike) -> None:
    """Writes the model directory of an imported model, whole or not at all.

    Its only checkpoint is step-0: no update was done here.

    Args:
        model: PortableModel.
        model_dir: path, where nothing may exist yet.

    Raises:
        InputError: something exists there, or weights and settings do not
            match.
    """
    from t2t_lite.storage.model_directory import ModelDirectory

    files.require_new_folder(model_dir)
    _require_fitting(model)
    with files.atomic_folder(files.to_path(model_dir)) as folder:
        directory = ModelDirectory(folder)
        _write_parts(model, directory)


def _write_parts(model, directory):
    from t2t_lite.storage import checkpoints, origin
    from t2t_lite.storage.model_directory import Settings

    vocabulary, hparams = model.vocabulary, model.hparams
    has_one = vocabulary.target is vocabulary
    vocabulary.save_in(directory.path)
    checkpoints.write(
        directory.checkpoints / "step-0",
        {**model.weights, **origin.tensors(hparams, vocabulary.sha256)},
    )
    directory.save_settings(
        Settings(
            hparams=hparams,
            corpus={},
            data_sha256="",
            vocabulary_sha256=vocabulary.sha256,
            vocabulary_size=vocabulary.size,
            target_vocabulary_size=None if has_one else vocabulary.target.size,
            micro_batch_tokens=hparams.tokens_per_batch,
            vocabulary_is_learned=False,
            language_tokens=bool(vocabulary.language_tokens),
        )
    )


def _require_fitting(model: PortableModel) -> None:
    """Raises InputError if weights are not those that the settings call for."""
    from t2t_lite.model.transformer import Transformer
    from t2t_lite.storage.model_directory import assign

    built = Transformer(
        model.hparams,
        vocabulary_size=model.vocabulary.size,
        num_target_ids=model.vocabulary.target.size,
    )
    built.build()
    assign(built.trainable_variables, model.weights, "the imported model")
