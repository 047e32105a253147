"""bin/serve serves both kinds of model to many clients, and stops cleanly."""

import concurrent.futures
import contextlib
import json
import signal
import time
import urllib.error
import urllib.request

import archives
import pytest
from binaries import TIMEOUT_S, start
from paths import ROOT

GOLDEN = ROOT / "tests" / "golden" / "0.1.0"
REPORT = json.loads((GOLDEN / "expected.json").read_text("utf-8"))
LINES, EXPECTED = REPORT["lines"], REPORT["expected"]

pytestmark = pytest.mark.slow


@contextlib.contextmanager
def serving(*flags):
    """Yields a running bin/serve process and its address."""
    process = start("serve", "--port=0", *flags)
    try:
        address = process.stdout.readline().strip()
        assert address, process.communicate(timeout=TIMEOUT_S)[1]
        yield process, address
    finally:
        process.kill()
        process.communicate(timeout=TIMEOUT_S)


def ask(address, path, **body):
    data = json.dumps(body).encode() if body else None
    request = urllib.request.Request(f"{address}v1/models/{path}", data)
    with urllib.request.urlopen(request, timeout=TIMEOUT_S) as response:
        return json.load(response)


def stop(process):
    """Stops a server as Ctrl-C does; returns its status and what it said."""
    process.send_signal(signal.SIGINT)
    return process.wait(TIMEOUT_S), process.stderr.read()


@pytest.fixture(scope="module")
def export(tmp_path_factory):
    folder = tmp_path_factory.mktemp("golden")
    archives.unpack(GOLDEN / "export.tar.gz", folder)
    return folder / "export"


def assert_serves(address, name, expected):
    """Checks that a model is available and translates LINES as expected.

    Args:
        address: str, of the server.
        name: str, of the model.
        expected: list of (text, score), one for each of LINES.
    """
    (version,) = ask(address, name)["model_version_status"]
    assert (version["version"], version["state"]) == ("1", "AVAILABLE")
    found = ask(address, f"{name}:predict", inputs=LINES)["outputs"]
    assert found["outputs"] == [text for text, _ in expected]
    scores = [score for _, score in expected]
    assert found["scores"] == pytest.approx(scores, abs=1e-4)


def test_an_export_is_served_to_the_same_texts_until_ctrl_c(export):
    flags = f"--export_dir={export}", "--name=export"
    with serving(*flags) as (process, address):
        assert_serves(address, "export", [n[0] for n in EXPECTED["export"]])
        status, errors = stop(process)
        assert status == 0, errors
        assert "Stopping after the requests in progress are answered." in errors
        assert "Traceback" not in errors


def test_clients_get_their_own_and_a_stop_finishes_what_was_asked():
    lines = LINES * 3
    expected = [nbest[0][0] for nbest in EXPECTED["last"]] * 3
    flag = f"--model_dir={GOLDEN / 'translation'}"

    def translate(line):
        (text,) = ask(address, "m:predict", inputs=[line])["outputs"]["outputs"]
        return text

    with (
        serving(flag, "--name=m") as (process, address),
        concurrent.futures.ThreadPoolExecutor(16) as clients,
    ):
        assert_serves(address, "m", [nbest[0] for nbest in EXPECTED["last"]])
        assert [*clients.map(translate, lines)] == expected
        # All others wait behind one long request.
        long = clients.submit(ask, address, "m:predict", inputs=LINES * 100)
        asked = [clients.submit(translate, line) for line in lines[1:]]
        time.sleep(0.5)  # Until the server has them.
        assert not long.done()
        process.send_signal(signal.SIGTERM)
        assert len(long.result()["outputs"]["outputs"]) == 100 * len(LINES)
        assert [each.result() for each in asked] == expected[1:]
        assert process.wait(TIMEOUT_S) == 0
        with pytest.raises(urllib.error.URLError):
            translate("late")
