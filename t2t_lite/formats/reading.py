"""Reads a model of another program, whichever it is."""

import os

from t2t_lite import files
from t2t_lite.errors import InputError
from t2t_lite.formats import hugging_face_import, marian
from t2t_lite.formats.portable import PortableModel


def read(path: str | os.PathLike) -> PortableModel:
    """Returns the model of a folder or archive, whose kind is detected.

    Args:
        path: of a Marian or a Hugging Face model.

    Raises:
        InputError: it is of neither kind, or cannot be represented.
    """
    place = files.to_path(path)
    if not place.exists():
        raise InputError(f"{path} does not exist: give a folder or an archive")
    if hugging_face_import.is_hugging_face(place):
        return hugging_face_import.read(place)
    if marian.is_marian(place):
        return marian.read(place)
    raise InputError(
        f"{path} must be a Marian model (a folder or archive with a decoder.yml"
        " and an .npz) or a Hugging Face one (a folder with a config.json of "
        "model_type marian); received neither"
    )
