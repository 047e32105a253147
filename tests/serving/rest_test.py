"""Requests and answers have TensorFlow Serving's documented REST format."""

import base64
import json

import numpy as np
import pytest

from t2t_lite.errors import InputError
from t2t_lite.serving import rest

INPUTS = {
    "serving_default": ["inputs"],
    "translate_prefix": ["inputs", "prefixes"],
}


def parsed(**body):
    return rest.parse(json.dumps(body).encode(), INPUTS)


def b64(text):
    return {"b64": base64.b64encode(text).decode()}


@pytest.mark.parametrize(
    "body",
    [
        {"instances": ["a", "ä"]},
        {"instances": [{"inputs": "a"}, {"inputs": "ä"}]},
        {"instances": ["a", b64("ä".encode())]},
        {"inputs": ["a", "ä"]},
        {"inputs": {"inputs": ["a", b64("ä".encode())]}},
        {"inputs": ["a", "ä"], "signature_name": "serving_default"},
    ],
)
def test_a_single_input_has_its_texts_in_each_form(body):
    asked = parsed(**body)
    assert asked.signature == "serving_default"
    assert asked.columns == {"inputs": [b"a", "ä".encode()]}
    assert asked.has_rows == ("instances" in body)
    assert rest.count_texts(asked.columns) == 2


@pytest.mark.parametrize(
    "form",
    [
        {"instances": [{"inputs": "a", "prefixes": "b"}] * 2},
        {"inputs": {"prefixes": ["b", "b"], "inputs": ["a", "a"]}},
    ],
)
def test_several_inputs_are_named(form):
    asked = parsed(signature_name="translate_prefix", **form)
    assert asked.columns == {"inputs": [b"a"] * 2, "prefixes": [b"b"] * 2}


def test_no_texts_are_a_column_of_none():
    assert parsed(inputs=[]).columns == {"inputs": []}


def test_an_empty_name_is_that_of_the_default():
    asked = parsed(signature_name="", inputs=["a"])
    assert asked.signature == "serving_default"


@pytest.mark.parametrize(
    ("body", "line"),
    [
        (b"{", "the body is not valid JSON"),
        (b"\xff", "the body is not valid JSON"),
        (b"[" * 100_000, "the body is not valid JSON"),
        (b"[]", "the body must be a JSON object"),
        (b"{}", 'the body needs either "instances" or "inputs"'),
        (b'{"inputs": [], "instances": []}', "needs either"),
        (b'{"inputs": "a"}', "'inputs' must be a list of texts"),
        (
            b'{"signature": "score", "inputs": []}',
            "body may have only signatur",
        ),
        (b'{"inputs": {"inputs": ["a"], "prefixes": ["b"]}}', "must have 'inp"),
        (b'{"instances": [{"inputs": "a", "x": "b"}]}', "must have 'inputs'"),
        (b'{"inputs": {"inputs": "a"}}', "'inputs' must be a list of texts"),
        (b'{"inputs": [["a"]]}', r"each text must be a string; received \['a"),
        (b'{"inputs": [1]}', "each text must be a string; received 1"),
        (b'{"inputs": [null]}', "each text must be a string; received None"),
        (b'{"inputs": ["\\ud800"]}', "a text is neither valid UTF-8"),
        (b'{"inputs": [{"b64": "/w=="}]}', "a text is neither valid UTF-8"),
        (b'{"inputs": [{"b64": "!"}]}', "nor valid UTF-8 in base64"),
        (b'{"inputs": [{"b64": 1}]}', "nor valid UTF-8 in base64"),
        (b'{"inputs": {"input": ["a"]}}', "must have 'inputs'; received 'inp"),
        (b'{"instances": {"inputs": "a"}}', '"instances" must be a list'),
        (b'{"instances": []}', '"instances" must be a list that is not empty'),
        (b'{"instances": [{"input": "a"}]}', "must have 'inputs'; received 'i"),
        (b'{"signature_name": "x", "inputs": []}', "has no signature 'x'"),
        (b'{"signature_name": [], "inputs": []}', r"has no signature \[\]"),
        (
            b'{"signature_name": "translate_prefix", "instances": ["a"]}',
            "an instance must be a JSON object with 'inputs' and 'prefixes'$",
        ),
        (
            b'{"signature_name": "translate_prefix", "inputs": '
            b'{"inputs": ["a"], "prefixes": []}}',
            "inputs must have the same number of texts; received inputs=1, pre",
        ),
    ],
)
def test_what_is_no_request_is_refused(body, line):
    with pytest.raises(InputError, match=line):
        rest.parse(body, INPUTS)


OUTPUTS = {
    "outputs": np.array([[b"a", "ä".encode()], [b"b", b""]], object),
    "scores": np.array([[-0.5, -1], [-2, -np.inf]], np.float32),
    "truncated": np.array([False, True]),
}


def test_columns_are_answered_in_columns():
    found = rest.answer(OUTPUTS, has_rows=False)
    assert "-Infinity" in found  # Unquoted, as from TensorFlow Serving.
    assert json.loads(found) == {
        "outputs": {
            "outputs": [["a", "ä"], ["b", ""]],
            "scores": [[-0.5, -1], [-2, -np.inf]],
            "truncated": [False, True],
        }
    }


def test_rows_are_answered_in_rows():
    assert json.loads(rest.answer(OUTPUTS, has_rows=True)) == {
        "predictions": [
            {"outputs": ["a", "ä"], "scores": [-0.5, -1], "truncated": False},
            {"outputs": ["b", ""], "scores": [-2, -np.inf], "truncated": True},
        ]
    }


def test_numbers_have_no_more_digits_than_they_hold():
    found = rest.answer({"scores": np.float32([0.2, np.nan])}, has_rows=False)
    assert found == '{"outputs": [0.2, NaN]}'


@pytest.mark.parametrize("has_rows", [False, True])
def test_a_single_output_has_no_name(has_rows):
    found = rest.answer({"outputs": np.array([b"a"], object)}, has_rows)
    key = "predictions" if has_rows else "outputs"
    assert json.loads(found) == {key: ["a"]}


def test_status_and_errors_are_those_of_tensorflow_serving():
    assert json.loads(rest.status("3")) == {
        "model_version_status": [
            {
                "version": "3",
                "state": "AVAILABLE",
                "status": {"error_code": "OK", "error_message": ""},
            }
        ]
    }
    assert json.loads(rest.error('a "b"')) == {"error": 'a "b"'}


def test_metadata_is_that_of_tensorflow_serving():
    specs = {
        "inputs": {"inputs": rest.TensorSpec("DT_STRING", [-1])},
        "outputs": {"scores": rest.TensorSpec("DT_FLOAT", [-1, 4])},
    }
    found = json.loads(rest.metadata("m", "1", {"translate_nbest": specs}))
    assert found["model_spec"] == {
        "name": "m",
        "signature_name": "",
        "version": "1",
    }
    signature = found["metadata"]["signature_def"]["signature_def"]
    assert signature == {
        "translate_nbest": {
            "inputs": {
                "inputs": {
                    "dtype": "DT_STRING",
                    "tensor_shape": {
                        "dim": [{"size": "-1", "name": ""}],
                        "unknown_rank": False,
                    },
                    "name": "inputs",
                }
            },
            "outputs": {
                "scores": {
                    "dtype": "DT_FLOAT",
                    "tensor_shape": {
                        "dim": [
                            {"size": "-1", "name": ""},
                            {"size": "4", "name": ""},
                        ],
                        "unknown_rank": False,
                    },
                    "name": "scores",
                }
            },
            "method_name": "tensorflow/serving/predict",
        }
    }
