"""bin/serve answers as TensorFlow Serving's REST API does, and has a page."""

import asyncio
import io
import json
import time

import pytest
import tensorflow as tf

pytest.importorskip("aiohttp")

from aiohttp import test_utils

from t2t_lite.serving import opening
from t2t_lite.serving.opening import Opened
from t2t_lite.serving.server import Server

MODEL = "/v1/models/tiny"
PREDICT = f"{MODEL}:predict"


def upper(inputs):
    return {
        "outputs": tf.strings.upper(inputs),
        "size": tf.strings.length(inputs),
    }


def fail(inputs):
    with tf.control_dependencies(
        [tf.debugging.assert_equal(1, tf.size(inputs))]
    ):
        return {"outputs": inputs}


def signatures(**functions):
    text_B = [tf.TensorSpec([None], tf.string, name="inputs")]
    return {
        name: tf.function(function, text_B)
        for name, function in functions.items()
    }


ALIGNED = "translate_aligned"
NOTHING = (
    "{} does not exist: the model is at /v1/models/tiny (version 3), with "
    ":predict and /metadata"
)
OPENED = Opened(
    signatures(serving_default=upper, fail=fail, translate_aligned=upper),
    "3",
    None,
)


def ask(*requests, opened=OPENED, timeout_seconds=60, together=False):
    """Returns the (status, content) of each request (method, path[, body]).

    Args:
        *requests: a body is bytes, or a dict to send as JSON.
        opened: the model to serve.
        timeout_seconds: that of the Server.
        together: whether all requests are sent at the same time.
    """

    async def answer(client, method, path, body=None):
        data = json.dumps(body) if isinstance(body, dict) else body
        if isinstance(data, bytes):
            data = io.BytesIO(data)
        response = await client.request(
            method, path, data=data, allow_redirects=False
        )
        text = await response.text()
        is_json = response.content_type == "application/json"
        content = json.loads(text) if is_json else text
        return response.status, content

    async def run():
        server = Server("tiny", opened, timeout_seconds)
        async with test_utils.TestClient(
            test_utils.TestServer(server.app())
        ) as client:
            if together:
                return await asyncio.gather(
                    *(answer(client, *each) for each in requests)
                )
            return [await answer(client, *each) for each in requests]

    return asyncio.run(run())


def test_it_answers_as_tensorflow_serving():
    columns, rows, by_version = ask(
        ("POST", PREDICT, {"inputs": ["a", "bc"]}),
        ("POST", PREDICT, {"instances": ["a"]}),
        ("POST", f"{MODEL}/versions/3:predict", {"inputs": []}),
    )
    outputs = {"outputs": ["A", "BC"], "size": [1, 2]}
    assert columns == (200, {"outputs": outputs})
    assert rows == (200, {"predictions": [{"outputs": "A", "size": 1}]})
    assert by_version == (200, {"outputs": {"outputs": [], "size": []}})


def test_it_says_that_it_is_there_and_what_it_has():
    status, metadata = ask(("GET", MODEL), ("GET", f"{MODEL}/metadata"))
    (version,) = status[1]["model_version_status"]
    assert (version["version"], version["state"]) == ("3", "AVAILABLE")
    described = metadata[1]["metadata"]["signature_def"]["signature_def"]
    assert sorted(described) == ["fail", "serving_default", ALIGNED]
    outputs = described["serving_default"]["outputs"]
    assert outputs["size"]["dtype"] == "DT_INT32"
    assert outputs["outputs"]["tensor_shape"]["dim"] == [
        {"size": "-1", "name": ""}
    ]


def test_an_export_is_served_and_described_as_the_model_is(tmp_path):
    path = tmp_path / "3"
    tf.saved_model.save(tf.Module(), str(path), OPENED.signatures)
    requests = (
        ("POST", PREDICT, {"inputs": ["a"]}),
        ("GET", f"{MODEL}/metadata"),
    )
    export, model = (
        ask(*requests, opened=each)
        for each in (opening.open_export(path), OPENED)
    )
    assert export == model
    assert model[0] == (200, {"outputs": {"outputs": ["A"], "size": [1]}})


@pytest.mark.parametrize(
    ("request_", "status", "message"),
    [
        (("POST", PREDICT, b"{"), 400, "the body is not valid JSON"),
        (("POST", PREDICT, {"inputs": [1]}), 400, "each text must be a string"),
        (("POST", PREDICT, {"inputs": ["a"] * 1025}), 400, "up to 1024 texts"),
        (
            ("POST", PREDICT, b" " * 10_000_000),
            413,
            "Maximum request body size",
        ),
        (("GET", PREDICT), 405, "Method Not Allowed: use POST"),
        (("POST", MODEL, {}), 405, "Method Not Allowed: use GET or HEAD"),
        *(
            ((method, path, {"inputs": []}), 404, NOTHING.format(path))
            for method, path in (
                ("GET", "/v1/models/other"),
                ("GET", f"{MODEL}/versions/4"),
                ("POST", "/v1/models/other:predict"),
                ("GET", "/elsewhere"),
            )
        ),
        (
            (
                "POST",
                PREDICT,
                {"signature_name": ALIGNED, "inputs": ["a"] * 65},
            ),
            400,
            "a request for translate_aligned may have up to 64 texts",
        ),
        (
            ("POST", PREDICT, {"signature_name": "fail", "inputs": ["a", "b"]}),
            500,
            "the model failed: ",
        ),
    ],
)
def test_errors_are_json(request_, status, message):
    found, after = ask(request_, ("POST", PREDICT, {"inputs": ["a"]}))
    assert found[0] == status
    assert [*found[1]] == ["error"]
    assert message in found[1]["error"]
    assert after[0] == 200


def test_a_request_that_takes_too_long_is_given_up():
    def wait(texts):
        time.sleep(0.3 * (texts[0] == b"slow"))
        return texts

    def slow(inputs):
        texts = tf.numpy_function(wait, [inputs], tf.string)
        return {"outputs": tf.ensure_shape(texts, [None])}

    opened = Opened(signatures(serving_default=slow), "1", None)
    late, after = ask(
        ("POST", PREDICT, {"inputs": ["slow"]}),
        ("GET", MODEL),
        opened=opened,
        timeout_seconds=0.1,
    )
    assert late == (504, {"error": "no answer within 0.1 seconds"})
    assert after[0] == 200


def test_a_signature_that_fails_at_first_ends_no_other(caplog):
    def broken(inputs):
        with tf.control_dependencies([tf.debugging.assert_equal(0, 1)]):
            return {"outputs": tf.identity(inputs)}

    served = signatures(serving_default=upper, z=broken, y=upper)
    requests = (
        ("POST", PREDICT, {"signature_name": name, "inputs": ["a"]})
        for name in "zy"
    )
    found = ask(*requests, opened=Opened(served, "1", None))
    assert [status for status, _ in found] == [500, 200]
    assert "The signature z fails" in caplog.text


def test_many_clients_get_their_own():
    texts = [f"text {n}" for n in range(200)]
    requests = [("POST", PREDICT, {"inputs": [text]}) for text in texts]
    found = ask(*requests, together=True)
    assert [each["outputs"]["outputs"] for _, each in found] == [
        [text.upper()] for text in texts
    ]


def test_the_page_is_told_which_model_it_is_of():
    redirect, page = ask(("GET", "/"), ("GET", "/?model=tiny"))
    assert redirect[0] == 302
    assert page[0] == 200
    assert page[1].startswith("<!doctype html>")
