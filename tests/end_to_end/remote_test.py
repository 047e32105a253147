"""Programs read and write remote files, here TensorFlow's ram:// ones."""

import gzip
import json
from typing import NamedTuple

import in_process
import pytest
import tensorflow as tf
import tiny_run
from refusal import assert_refused
from shared_trainer import shared_trainers

from t2t_lite import files, remote_path
from t2t_lite.errors import InputError
from t2t_lite.serving import checks
from t2t_lite.training import resuming, workers
from t2t_lite.training.options import RunOptions
from t2t_lite.translation.line_translator import Translator

_STORE = "ram://bucket"
_MODEL = f"{_STORE}/runs/model"
_SOURCE = "eins zwei\nneun acht\n"


@pytest.fixture(scope="module", autouse=True)
def _one_trainer():
    with shared_trainers():
        yield


class _LostConnectionError(Exception):
    """Interrupts a save between two files."""


def _upload_corpus(folder):
    """Uploads a tiny corpus to the store; returns its flags."""
    flags = []
    for flag in tiny_run.write_corpus(folder):
        name, local = flag.split("=")
        path = files.to_path(f"{_STORE}/text/{local.rpartition('/')[2]}")
        path.upload(local)
        flags.append(f"{name}={path}")
    return flags


def _train(corpus, *flags, model_dir=_MODEL):
    with in_process.on_one_core():
        return in_process.run(
            "train",
            *tiny_run.FLAGS,
            *corpus,
            "--override=max_extra_length=5",
            f"--model_dir={model_dir}",
            "--xla=false",
            *flags,
        )


def _run(name, *flags):
    status, out, errors = in_process.run(name, f"--model_dir={_MODEL}", *flags)
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


class _Interrupted(NamedTuple):
    """A run in the store that lost its connection once and was resumed."""

    corpus: list[str]
    flags: list[str]  # of this run and of an undisturbed one
    steps: list[str]  # its checkpoints when the connection was lost
    errors: str  # stderr of the resumed run


@pytest.fixture(scope="module")
def interrupted(tmp_path_factory):
    folder = tmp_path_factory.mktemp("here")
    corpus = _upload_corpus(folder)
    flags = [f"--cache_dir={folder / 'cache'}", "--steps=6"]
    command = *flags, "--save_every_steps=2", "--evaluate_every_steps=6"
    # Fails in the middle of a save: the data is there, the index is not yet.
    upload = remote_path.RemotePath.upload

    def lose_connection(self, local):
        if self.name == "step-4.index":
            raise _LostConnectionError("between two files")
        upload(self, local)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(remote_path.RemotePath, "upload", lose_connection)
        with pytest.raises(_LostConnectionError):
            _train(corpus, *command)
    steps = _steps()
    status, _, errors = _train(corpus, *command)
    assert status == 0, errors
    return _Interrupted(corpus, flags, steps, errors=errors)


def _to_train_on(corpus):
    return [flag for flag in corpus if flag.startswith("--train")]


@pytest.mark.slow
def test_a_run_goes_on_from_what_was_whole_as_if_undisturbed(
    interrupted, tmp_path
):
    assert interrupted.steps == ["step-2.index"]
    assert "step-2" in interrupted.errors
    assert _steps() == ["step-4.index", "step-6.index"]
    # It needs no scoring, which changes no weights.
    status, _, errors = _train(
        _to_train_on(interrupted.corpus),
        *interrupted.flags,
        model_dir=tmp_path / "undisturbed",
    )
    assert status == 0, errors
    resumed, expected = _weights(_MODEL), _weights(tmp_path / "undisturbed")
    assert resumed.keys() == expected.keys()
    for name, weights in resumed.items():
        assert (weights == expected[name]).all(), name


@pytest.mark.slow
def test_a_run_leaves_there_what_it_leaves_here(interrupted):
    log = files.to_path(f"{_MODEL}/train.log").read_text()
    assert "All 6 updates are done." in log
    assert list(files.to_path(f"{_MODEL}/summaries").iterdir())
    scores = files.read_json(f"{_MODEL}/scores.json")
    assert set(scores["splits"]) == {"dev", "test"}


@pytest.mark.slow
def test_a_model_is_averaged_and_evaluated_there(interrupted):
    assert f"{_MODEL}/averaged/step-6" in _run("average_checkpoints")
    report = f"{_STORE}/reports/card"
    _run("evaluate", "--xla=false", "--splits=test", f"--report={report}")
    card = files.read_json(f"{report}.json")
    assert card["splits"]["test"]["pairs"] == 60
    assert files.to_path(f"{report}.md").read_text().startswith("#")


@pytest.mark.slow
def test_an_export_there_translates_as_its_model_does(interrupted, tmp_path):
    source = tmp_path / "some"
    source.write_text(_SOURCE, "utf-8")
    files.to_path(f"{_STORE}/text/some").upload(source)
    output = f"{_STORE}/text/translated.gz"
    given = f"--input={_STORE}/text/some", f"--output={output}"
    _run("translate", "--xla=false", *given)
    # The export goes next to an older version.
    exports = f"{_STORE}/exports"
    assert checks.next_version(files.to_path(exports)) == 1
    files.to_path(f"{exports}/1/saved_model.pb").upload(source)
    out = _run("export", f"--export_dir={exports}", "--xla=false")
    assert f"{exports}/2" in out
    translator = Translator.from_saved_model(f"{exports}/2")
    lines = translator(_SOURCE.splitlines())
    translated = tf.io.gfile.GFile(output, "rb").read()
    assert gzip.decompress(translated).decode().splitlines() == lines


@pytest.mark.slow
def test_a_run_here_starts_from_a_model_there(interrupted, tmp_path):
    corpus, start = _to_train_on(interrupted.corpus), tmp_path / "start"
    flags = f"--warm_start_from={_MODEL}", "--steps=1"
    status, _, errors = _train(corpus, *flags, model_dir=start)
    assert status == 0, errors
    assert json.loads((start / "settings.json").read_text())


def test_tokens_need_a_folder_of_this_machine(tmp_path):
    corpus = tiny_run.write_corpus(tmp_path)
    flags = [*tiny_run.FLAGS, *corpus, f"--model_dir={_STORE}/no_cache"]
    assert_refused(in_process.run("train", *flags), "--cache_dir")
    flags.append(f"--cache_dir={_STORE}/cache")
    assert_refused(
        in_process.run("train", *flags),
        "--cache_dir must be a local folder",
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
        "TensorFlow has no file system for nowhere://: register one",
    )


@pytest.mark.parametrize("url", [f"{_STORE}/m", "missing"])
def test_workers_meet_before_a_url_is_read(url, tmp_path, monkeypatch):
    calls = []

    def read(*_):
        calls.append("read")
        raise InputError("that is enough")

    monkeypatch.setattr(resuming, "read_previous_run", read)
    monkeypatch.setattr(workers, "join_cluster", lambda _: calls.append("met"))
    found = in_process.run("train", f"--model_dir={url}")
    assert_refused(found, "that is enough")
    assert calls == (["met", "read"] if "://" in url else ["read"])


def test_workers_cannot_meet_once_a_url_was_read(monkeypatch):
    cluster = {"worker": ["127.0.0.1:9", "127.0.0.1:10"]}
    task = {"type": "worker", "index": 0}
    monkeypatch.setenv(
        "TF_CONFIG", json.dumps({"cluster": cluster, "task": task})
    )
    with pytest.raises(InputError, match="must connect before any URL is read"):
        workers.join_cluster(RunOptions(strategy="multi_worker"))
