"""A run whose every file lies on another machine: TensorFlow's own ram://."""

import gzip
import json

import in_process
import pytest
import tensorflow as tf
import tiny_run
from refusal import assert_refused

from t2t_lite import files, remote_path
from t2t_lite.decoding.translation import Translator
from t2t_lite.errors import InputError
from t2t_lite.training import resuming, workers
from t2t_lite.training.options import RunOptions

_STORE = "ram://bucket"
_MODEL = f"{_STORE}/runs/model"
_SOURCE = "eins zwei\nneun acht\n"


class _LostConnectionError(Exception):
    """What ends a save between two files."""


def _upload_corpus(folder):
    """Returns the flags of a tiny corpus that lies in the store."""
    flags = []
    for flag in tiny_run.write_corpus(folder):
        name, local = flag.split("=")
        path = files.to_path(f"{_STORE}/text/{local.rpartition('/')[2]}")
        path.upload(local)
        flags.append(f"{name}={path}")
    return flags


def _train(corpus, cache_dir, model_dir=_MODEL, steps=6):
    return in_process.run(
        "train",
        *tiny_run.FLAGS,
        *corpus,
        f"--model_dir={model_dir}",
        f"--cache_dir={cache_dir}",
        f"--steps={steps}",
        "--save_every_steps=2",
        "--xla=false",
    )


def _run(name, *flags, text=""):
    status, out, errors = in_process.run(
        name, f"--model_dir={_MODEL}", *flags, text=text
    )
    assert status == 0, errors
    return out


def _steps(model_dir=_MODEL):
    folder = files.to_path(f"{model_dir}/checkpoints")
    return sorted(path.name for path in folder.glob("step-*.index"))


def _weights(model_dir):
    path = files.to_path(f"{model_dir}/checkpoints") / "step-6"
    reader = tf.compat.v1.train.NewCheckpointReader(str(path))
    names = sorted(reader.get_variable_to_shape_map())
    return {n: reader.get_tensor(n) for n in names if n.startswith("transf")}


@pytest.mark.slow
def test_all_of_a_run_on_another_machine(tmp_path, monkeypatch):
    corpus = _upload_corpus(tmp_path)

    # An exception in the middle of a save: the data is there, no index yet.
    upload = remote_path.RemotePath.upload

    def lose_connection(self, local):
        if self.name == "step-4.index":
            raise _LostConnectionError("between two files")
        upload(self, local)

    with monkeypatch.context() as patch:
        patch.setattr(remote_path.RemotePath, "upload", lose_connection)
        with pytest.raises(_LostConnectionError):
            _train(corpus, tmp_path / "cache")
    assert _steps() == ["step-2.index"]

    # The same command goes on from the last whole one, as if undisturbed.
    status, _, errors = _train(corpus, tmp_path / "cache")
    assert status == 0, errors
    assert "step-2" in errors
    assert _steps() == ["step-4.index", "step-6.index"]
    undisturbed = tmp_path / "undisturbed"
    assert _train(corpus, tmp_path / "cache", undisturbed)[0] == 0
    resumed, expected = _weights(_MODEL), _weights(undisturbed)
    assert resumed.keys() == expected.keys()
    for name, weights in resumed.items():
        assert (weights == expected[name]).all(), name
    log = files.to_path(f"{_MODEL}/train.log").read_text()
    assert "All 6 updates are done." in log
    assert list(files.to_path(f"{_MODEL}/summaries").iterdir())
    scores = files.read_json(f"{_MODEL}/scores.json")
    assert set(scores["splits"]) == {"dev", "test"}

    # Average, evaluate, translate: as with the folder of this machine.
    assert f"{_MODEL}/averaged/step-6" in _run("average_checkpoints")
    report = f"{_STORE}/reports/card"
    _run("evaluate", "--xla=false", f"--report={report}")
    card = files.read_json(f"{report}.json")
    assert card["splits"]["test"]["pairs"] == 60
    assert files.to_path(f"{report}.md").read_text().startswith("#")
    files.to_path(f"{_STORE}/text/some").upload(_local(tmp_path, _SOURCE))
    output = f"{_STORE}/text/translated.gz"
    _run(
        "translate",
        "--xla=false",
        f"--input={_STORE}/text/some",
        f"--output={output}",
    )
    lines = _run("translate", "--xla=false", text=_SOURCE)
    translated = tf.io.gfile.GFile(output, "rb").read()
    assert gzip.decompress(translated).decode() == lines

    # Exported there, and loaded from there.
    exports = f"{_STORE}/exports"
    for version in (1, 2):
        out = _run("export", f"--export_dir={exports}", "--xla=false")
        assert f"{exports}/{version}" in out
    translator = Translator.from_saved_model(f"{exports}/2")
    assert (
        "".join(f"{line}\n" for line in translator(_SOURCE.splitlines()))
        == lines
    )

    # A model there can be started from.
    warm = tmp_path / "warm"
    status, _, errors = in_process.run(
        "train",
        *tiny_run.FLAGS,
        *corpus,
        f"--model_dir={warm}",
        f"--warm_start_from={_MODEL}",
        "--steps=1",
        "--xla=false",
    )
    assert status == 0, errors
    assert json.loads((warm / "settings.json").read_text())


def _local(folder, text):
    path = folder / "some"
    path.write_text(text, "utf-8")
    return path


def test_tokens_need_a_folder_of_this_machine(tmp_path):
    corpus = tiny_run.write_corpus(tmp_path)
    flags = [*tiny_run.FLAGS, *corpus, f"--model_dir={_STORE}/no_cache"]
    assert_refused(in_process.run("train", *flags), "--cache_dir")
    flags.append(f"--cache_dir={_STORE}/cache")
    assert_refused(
        in_process.run("train", *flags),
        "--cache_dir must be a folder of this machine",
    )


@pytest.mark.parametrize(
    ("name", "flags"),
    [
        ("translate", ["--model_dir=nowhere://bucket/model"]),
        ("evaluate", ["--model_dir=nowhere://bucket/model"]),
        ("train", ["--model_dir=nowhere://bucket/model"]),
        ("train", ["--model_dir=x", "--train_trees=nowhere://b/x.mrg"]),
    ],
)
def test_a_scheme_that_tensorflow_does_not_know(name, flags):
    assert_refused(
        in_process.run(name, *flags),
        "TensorFlow knows no file system nowhere://: register one",
    )


@pytest.mark.parametrize("url", [f"{_STORE}/m", "missing"])
def test_workers_meet_before_a_url_is_read(url, tmp_path, monkeypatch):
    calls = []

    def read(*_):
        calls.append("read")
        raise InputError("that is enough")

    monkeypatch.setattr(resuming, "begun_with", read)
    monkeypatch.setattr(
        workers, "train_together", lambda _: calls.append("met")
    )
    found = in_process.run("train", f"--model_dir={url}")
    assert_refused(found, "that is enough")
    assert calls == (["met", "read"] if "://" in url else ["read"])


def test_workers_cannot_meet_once_a_url_was_read(monkeypatch):
    cluster = {"worker": ["127.0.0.1:9", "127.0.0.1:10"]}
    task = {"type": "worker", "index": 0}
    monkeypatch.setenv(
        "TF_CONFIG", json.dumps({"cluster": cluster, "task": task})
    )
    with pytest.raises(InputError, match="meet before URLs are read"):
        workers.train_together(RunOptions(strategy="multi_worker"))
