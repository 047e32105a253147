"""Other processes, most without this package, translate as this one does."""

import concurrent.futures
import dataclasses
import os
import pathlib
import random
import shutil
import statistics
import string
import subprocess
import sys
import time

import numpy as np
import pytest
from binaries import WITHOUT_EXTRAS
from paths import HELPERS, ROOT
from prediction_client import Server, lonely_environment
from readme import example_with
from tiny_translator import (
    LINES,
    ONE_LAYER,
    WORDS,
    learn_vocabulary,
    write_model,
)

from t2t_lite.decoding.search import SearchOptions
from t2t_lite.serving import export
from t2t_lite.serving.signatures import ServingOptions
from t2t_lite.translation.line_translator import Translator

pytestmark = pytest.mark.slow

_NUM_REQUESTS, _NUM_CLIENTS = 2000, 16
MAX_LENGTH = 12  # As many tokens as the longest of LINES has.
SMALL = dataclasses.replace(
    ONE_LAYER, max_length=MAX_LENGTH, beam_width=2, max_extra_length=2
)


@pytest.fixture(scope="module")
def exported(tmp_path_factory):
    """The paths of a model directory and of its export."""
    folder = tmp_path_factory.mktemp("exported")
    directory = write_model(folder / "model", learn_vocabulary(), SMALL)
    options = ServingOptions(SearchOptions.from_hparams(SMALL), MAX_LENGTH)
    path = export.export(directory, folder / "tiny", options)
    return directory.path, path


@pytest.fixture(scope="module")
def translator(exported):
    return Translator(exported[0], xla=False)


def assert_equal(texts, scores, translator, lines):
    """Asserts that scores agree to 1e-4 and texts in at least 99% of lines."""
    expected, expected_scores = translator(lines, with_scores=True)
    differ = [n for n in range(len(lines)) if texts[n] != expected[n]]
    print(f"{len(differ)} of {len(lines)} texts differ")
    # Batches of other sizes round differently, in proportion to the score.
    np.testing.assert_allclose(scores, expected_scores, rtol=1e-4, atol=1e-4)
    assert len(differ) <= 0.01 * len(lines)


# A model on a different device from the pipeline that calls it.

_TWO_DEVICES = """
import sys
import tensorflow as tf
(cpu,) = tf.config.list_physical_devices("CPU")
tf.config.set_logical_device_configuration(
    cpu, [tf.config.LogicalDeviceConfiguration()] * 2
)
import t2t_lite
with tf.device("/cpu:1"):
    translator = t2t_lite.Translator(sys.argv[1], xla=False)
assert translator.model.weights[0].value.device.endswith("CPU:1")
lines = sys.stdin.read().split("\\n")[:-1]
dataset = tf.data.Dataset.from_tensor_slices(lines).batch(3)
dataset = dataset.map(translator, num_parallel_calls=2).unbatch()
for text in dataset.as_numpy_iterator():
    print(text.decode())
"""


def test_a_pipeline_on_one_device_translates_with_a_model_on_another(
    exported, translator
):
    paths = WITHOUT_EXTRAS, str(ROOT)
    out = subprocess.run(
        [sys.executable, "-c", _TWO_DEVICES, exported[0]],
        input="".join(f"{line}\n" for line in LINES),
        capture_output=True,
        encoding="utf-8",
        env=lonely_environment() | {"PYTHONPATH": os.pathsep.join(paths)},
        check=True,
    ).stdout
    assert out.split("\n")[:-1] == translator(LINES)


# A C program, without Python.


@pytest.fixture(scope="module")
def c_client(tmp_path_factory):
    """The path of the program compiled from serving_client.c."""
    gcc = shutil.which("gcc")
    if gcc is None:
        pytest.skip("there is no gcc")
    import tensorflow as tf

    folder = pathlib.Path(tf.sysconfig.get_lib())
    client = tmp_path_factory.mktemp("client") / "serving_client"
    # The default linker takes ten times as long to read TensorFlow's symbols.
    has_gold = shutil.which("ld.gold") is not None
    subprocess.run(
        [
            gcc,
            "-std=gnu11",
            "-Wall",
            "-Wextra",
            "-Werror",
            f"-I{tf.sysconfig.get_include()}",
            HELPERS / "serving_client.c",
            "-o",
            client,
            f"-L{folder}",
            "-l:libtensorflow_cc.so.2",
            "-l:libtensorflow_framework.so.2",
            f"-Wl,-rpath,{folder}",
            *(["-fuse-ld=gold"] if has_gold else []),
        ],
        check=True,
    )
    return client


def operations_of(path, signature):
    """Returns dicts of tensor names: a signature's inputs and its outputs."""
    from tensorflow.core.protobuf import saved_model_pb2

    saved = saved_model_pb2.SavedModel.FromString(
        (path / "saved_model.pb").read_bytes()
    )
    definition = saved.meta_graphs[0].signature_def[signature]
    return (
        {name: tensor.name for name, tensor in definition.inputs.items()},
        {name: tensor.name for name, tensor in definition.outputs.items()},
    )


def test_a_c_program_translates_alike(exported, translator, c_client):
    import tensorflow_text

    ops = pathlib.Path(tensorflow_text.__file__).parent / "python" / "ops"
    inputs, outputs = operations_of(exported[1], "serving_default")
    lines = [*LINES, "של 🙂"]
    out = subprocess.run(
        [
            c_client,
            exported[1],
            ops / "_sentencepiece_tokenizer.so",
            inputs["inputs"],
            *(outputs[name] for name in ("outputs", "scores", "truncated")),
        ],
        input="".join(f"{line}\n" for line in lines),
        capture_output=True,
        encoding="utf-8",
        env=lonely_environment(),
        check=True,
    ).stdout
    rows = [line.split("\t") for line in out.split("\n")[:-1]]
    texts, scores, truncated = zip(*rows, strict=True)
    assert_equal(texts, [float(s) for s in scores], translator, lines=lines)
    assert set(truncated) == {"0"}


# A server for many clients, whose process does not have this package.


@pytest.fixture(scope="module")
def server_and_first_times(exported):
    """A server, and the seconds that each of its first 30 requests took."""
    server = Server(exported[1])
    times = []
    try:
        for _ in range(30):
            start = time.perf_counter()
            server(inputs=["the old dog runs"])
            times.append(time.perf_counter() - start)
        yield server, times
    finally:
        server.close()
    assert server.process.returncode == 0


@pytest.fixture(scope="module")
def server(server_and_first_times):
    return server_and_first_times[0]


def test_the_first_request_after_the_warm_up_waits_for_nothing(
    server_and_first_times,
):
    _, times = server_and_first_times
    # Tracing or compiling would take tens of times as long as an answer.
    assert times[0] < 20 * statistics.median(times)


def test_a_process_without_this_package_translates_alike(server, translator):
    found = server(inputs=LINES)
    texts = [text.decode() for text in found["outputs"]]
    assert_equal(texts, found["scores"], translator, lines=LINES)


def test_16_clients_get_the_answers_of_the_translator(server, translator):
    choice = random.Random(0)
    lines = [
        " ".join(choice.choices(WORDS, k=choice.randint(0, MAX_LENGTH - 1)))
        for _ in range(_NUM_REQUESTS)
    ]
    resident = []
    with concurrent.futures.ThreadPoolExecutor(_NUM_CLIENTS) as clients:
        found = []
        for answer in clients.map(lambda line: server(inputs=[line]), lines):
            found.append(answer)
            if len(found) in (200, _NUM_REQUESTS):
                resident.append(server.resident_bytes())
    texts = [answer["outputs"][0].decode() for answer in found]
    scores = [answer["scores"][0] for answer in found]
    assert_equal(texts, scores, translator, lines=lines)
    first, last = resident
    # Only memory shows a leak: answers stay right until the system kills it.
    assert last < 1.05 * first


def test_the_documented_client_gets_its_answer(server, capsys):
    client = example_with("predict_pb2")
    assert "localhost:8500" in client
    exec(client.replace("localhost:8500", server.address), {})
    expected = server(inputs=["A dog runs."])["outputs"]
    assert capsys.readouterr().out == f"{[t.decode() for t in expected]}\n"


def random_text(choice):
    """Returns bytes of any kind: words, characters, or not even text."""
    kind = choice.randrange(4)
    size = choice.randint(0, 40)
    if kind == 0:
        return " ".join(choice.choices(WORDS, k=size)).encode()
    if kind == 1:
        return choice.randbytes(size)
    if kind == 2:
        return "".join(choice.choices(string.printable, k=size)).encode()
    points = (choice.randrange(0x110000) for _ in range(size))
    return "".join(map(chr, points)).encode("utf-8", "surrogatepass")


def test_10000_texts_of_any_kind_are_answered(server):
    choice = random.Random(1)
    for _ in range(20):
        texts = [random_text(choice) for _ in range(500)]
        found = server(inputs=texts)
        assert len([text.decode() for text in found["outputs"]]) == 500
        assert np.isfinite(found["scores"]).all()


def test_a_wrong_request_gets_an_error_and_the_server_goes_on(server):
    import grpc

    with pytest.raises(grpc.RpcError, match="one target for each source"):
        server("score", sources=["a", "b"], targets=["a"])
    with pytest.raises(grpc.RpcError, match="no such"):
        server("such", inputs=["a"])
    assert server(inputs=["the dog"])["outputs"].shape == (1,)
