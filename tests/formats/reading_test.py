"""A model is read by the program that it is of."""

import pytest
from tiny_hugging_face import GOLDEN

from t2t_lite.errors import InputError
from t2t_lite.formats import hugging_face_import, marian, reading


def test_the_kind_of_a_model_is_found(tied):
    for path, module in (
        (tied, marian),
        (str(tied / "decoder.yml"), marian),
        (GOLDEN / "opus", hugging_face_import),
    ):
        assert reading.read(path).hparams == module.read(path).hparams


def test_what_is_no_model_is_refused(tmp_path):
    with pytest.raises(InputError, match="none does not exist: give a folder"):
        reading.read(tmp_path / "none")
    (tmp_path / "notes").write_text("x")
    with pytest.raises(InputError, match="must be a Marian model"):
        reading.read(tmp_path / "notes")
