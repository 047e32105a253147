"""Edits settings.json of a model directory, as a user may."""

import json
import pathlib


def edit(model_dir, encoding="utf-8", hparams=None, **fields):
    """Replaces fields of settings.json, and removes its checksum.

    Args:
        model_dir: path of the model directory.
        encoding: of the new file.
        hparams: dict of fields of "hparams" to replace, or None.
        **fields: the others.
    """
    path = pathlib.Path(model_dir, "settings.json")
    values = json.loads(path.read_text("utf-8"))
    values.pop("sha256", None)
    values["hparams"] |= hparams or {}
    path.write_text(json.dumps(values | fields), encoding)
