"""Model directories open for serving; what cannot be served is refused."""

import pytest
import tensorflow as tf
from tiny_translator import LINES, ONE_LAYER, learn_vocabulary, write_model

from t2t_lite import Translator
from t2t_lite.errors import InputError
from t2t_lite.serving import opening

OPTIONS = {"sentences": "auto", "max_length": 20, "search": {"beam_width": 2}}
WEIGHTS = {"checkpoint": "last", "average_last": 1, "precision": "float32"}


@pytest.fixture(scope="module")
def model_dir(tmp_path_factory):
    folder = tmp_path_factory.mktemp("opened") / "model"
    return write_model(folder, learn_vocabulary(), ONE_LAYER).path


@pytest.mark.slow
def test_a_model_directory_translates_as_the_translator_does(model_dir):
    opened = opening.open_directory(model_dir, **WEIGHTS, **OPTIONS)
    translate = opened.signatures["serving_default"]
    found = translate(inputs=tf.constant(LINES))["outputs"].numpy()
    translator = Translator(model_dir, beam_width=2)
    assert [text.decode() for text in found] == translator(LINES)
    assert opened.version == "1"


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"checkpoint": "best"}, "has no checkpoint in best/"),
        ({"attention_head": 9}, "attention_head must be from 0 to"),
        ({"search": {"beam_width": 0}}, "beam_width must be at least 1"),
    ],
)
def test_options_that_do_not_suit_are_refused(model_dir, changes, message):
    with pytest.raises(InputError, match=message):
        opening.open_directory(model_dir, **(WEIGHTS | OPTIONS | changes))


def test_an_export_with_damaged_weights_is_refused(tmp_path):
    root = tf.Module()
    root.weight = tf.Variable(tf.ones([1000]))
    tf.saved_model.save(root, str(tmp_path))
    (data,) = tmp_path.glob("variables/*.data-*")
    data.write_bytes(data.read_bytes()[:100])
    with pytest.raises(InputError, match="export the model again"):
        opening.open_export(tmp_path)


def test_what_is_no_export_is_refused(tmp_path):
    with pytest.raises(InputError, match=f"cannot load {tmp_path} "):
        opening.open_export(tmp_path)
    (tmp_path / "saved_model.pb").write_text("no such thing")
    with pytest.raises(InputError, match=f"cannot load {tmp_path} "):
        opening.open_export(tmp_path)


@pytest.mark.parametrize(
    "spec", [tf.TensorSpec([None]), tf.TensorSpec([], tf.string), None]
)
def test_an_export_that_translates_no_text_is_refused(tmp_path, spec):
    specs = [] if spec is None else [spec]
    function = tf.function(lambda *inputs: {"outputs": tf.constant(1)}, specs)
    own = {"serving_default": function.get_concrete_function()}
    tf.saved_model.save(tf.Module(), str(tmp_path), own)
    with pytest.raises(InputError, match="serving_default that takes texts"):
        opening.open_export(tmp_path)
