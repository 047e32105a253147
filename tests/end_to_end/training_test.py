"""Runs of bin/train resume to the same bits, report scores, refuse changes."""

import concurrent.futures
import json
import pathlib
import random
import re
import resource
import shutil
import signal
import time
from typing import NamedTuple

import binaries
import in_process
import numpy as np
import pytest
import tiny_run
from refusal import assert_refused
from shared_trainer import shared_trainers

from t2t_lite.model import flops
from t2t_lite.optimization import trainer
from t2t_lite.storage import checkpoint_files, checkpoints
from t2t_lite.storage.model_directory import ModelDirectory
from t2t_lite.text import batching, token_files
from t2t_lite.training import run

pytestmark = pytest.mark.slow
_STEPS = 40
_LIKE_A_PATTERN = "a[1]\\*"
# Too small to move a weight. The rate is part of the graph, so runs that are to
# share a graph must all have this one.
_NO_RATE = "--override=learning_rate_scale=1e-12"


@pytest.fixture(scope="module", autouse=True)
def _one_trainer():
    with shared_trainers():
        yield


@pytest.fixture(scope="module")
def corpus(tmp_path_factory):
    return tiny_run.write_corpus(tmp_path_factory.mktemp("corpus"))


def _flags(corpus, model_dir, *more):
    return [
        *corpus,
        *tiny_run.FLAGS,
        "--override=max_extra_length=5",
        f"--model_dir={model_dir}",
        f"--steps={_STEPS}",
        "--save_every_steps=3",
        f"--evaluate_every_steps={_STEPS // 2}",
        *more,
    ]


def _without_scores(flags):
    """Returns flags without dev and test text, so that nothing is scored."""
    held_out = ("--dev_", "--test_", "--evaluate_every_steps")
    return [flag for flag in flags if not flag.startswith(held_out)]


def _last(model_dir):
    path, tensors = next(checkpoints.newest(model_dir / "checkpoints"))
    return path.name, tensors


def _train(*flags):
    """Trains to the end, with the same bits as a process of its own."""
    with in_process.optimized_graphs():
        status, out, errors = in_process.run("train", *flags)
    assert status == 0, errors
    return out, errors


def _train_on_one_core(*flags):
    """Trains on one core, for tests that compare no bits.

    Returns what in_process.run does.
    """
    with in_process.on_one_core():
        return in_process.run("train", *flags)


@pytest.fixture(scope="module")
def whole(corpus, tmp_path_factory):
    """A run that was never interrupted: (model directory, stdout)."""
    model_dir = tmp_path_factory.mktemp("whole") / "model"
    return model_dir, _train(*_flags(corpus, model_dir))[0]


@pytest.fixture
def copy(whole, tmp_path):
    """A copy of that run's model directory, for a test to continue from."""
    return shutil.copytree(whole[0], tmp_path / "copy")


@pytest.fixture(scope="module")
def longer(whole, corpus, tmp_path_factory):
    """That run, continued for two updates: (model directory, stdout)."""
    model_dir = tmp_path_factory.mktemp("longer") / "model"
    shutil.copytree(whole[0], model_dir)
    flags = _flags(
        corpus,
        model_dir,
        f"--steps={_STEPS + 2}",
        "--precision=bfloat16",
        "--sustained_tflops=9.5",
    )
    status, out, errors = _train_on_one_core(*_without_scores(flags))
    assert status == 0, errors
    return model_dir, out


_TIMES = ("device_seconds",)
_SCORES = (
    "best_score",
    "dev_sha256",
    "evaluated_step",
    "evaluations_without_gain",
)


@pytest.fixture(scope="module")
def warm(whole, corpus, tmp_path_factory):
    """A run of one update from its weights: (model directory, stderr).

    The path of the model directory looks like a glob pattern.
    """
    model_dir = tmp_path_factory.mktemp("warm") / _LIKE_A_PATTERN
    flags = _flags(
        corpus,
        model_dir,
        f"--warm_start_from={whole[0]}",
        _NO_RATE,
        "--steps=1",
    )
    status, _, errors = _train_on_one_core(*_without_scores(flags))
    assert status == 0, errors
    return model_dir, errors


class _AtOnce(NamedTuple):
    """What two runs left that were started at the same time with one cache.

    The first was killed partway, the second was stopped by SIGTERM. Then the
    same commands were run to their end.
    """

    cache: pathlib.Path
    model_dirs: list[pathlib.Path]
    flags: list[list[str]]
    logs: list[str]  # of each run's first process
    statuses: list[int]  # of the same processes
    saved: list[list[str]]  # names of the checkpoints that they left
    resumed: list[tuple[str, str]]  # (stdout, stderr) of the rest of each run


@pytest.fixture(scope="module")
def at_once(corpus, tmp_path_factory):
    folder = tmp_path_factory.mktemp("at_once")
    model_dirs = [folder / "killed", folder / "stopped"]
    cache = f"--cache_dir={folder / 'cache'}"
    flags = [
        _without_scores(_flags(corpus, model_dirs[0], cache)),
        _flags(corpus, model_dirs[1], cache, "--save_every_steps=1000"),
    ]
    processes = [binaries.start("train", *each) for each in flags]
    seconds = random.Random(20170612).uniform(0, 0.3)
    with concurrent.futures.ThreadPoolExecutor() as pool:
        logs = [
            pool.submit(_kill, processes[0], model_dirs[0], seconds),
            pool.submit(_stop, processes[1]),
        ]
    return _AtOnce(
        cache=folder / "cache",
        model_dirs=model_dirs,
        flags=flags,
        logs=[log.result() for log in logs],
        statuses=[process.returncode for process in processes],
        saved=[_saved(model_dir) for model_dir in model_dirs],
        resumed=[_train_anew(*flags[0]), _train(*flags[1])],
    )


def _train_anew(*flags):
    """Trains with a new trainer, as a resumed process does.

    Its graph sees other shapes first than the shared trainer's did.
    """
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(run, "Trainer", trainer.Trainer)
        return _train(*flags)


def _saved(model_dir):
    paths = checkpoint_files.paths(model_dir / "checkpoints")
    return [path.name for path in paths]


def _stop(process):
    """Stops a run by SIGTERM after its first update; returns its log."""
    lines = []
    for line in process.stderr:
        lines.append(line)
        if "Step 1 of" in line:
            break
    process.send_signal(signal.SIGTERM)
    _, errors = process.communicate(timeout=binaries.TIMEOUT_S)
    return "".join([*lines, errors])


def _kill(process, model_dir, seconds):
    """Kills a run `seconds` after its first checkpoint; returns its log."""
    # Before that, there would be nothing to resume.
    deadline = time.monotonic() + binaries.TIMEOUT_S
    while not checkpoint_files.paths(model_dir / "checkpoints"):
        if process.poll() is not None:  # The run has finished.
            break
        assert time.monotonic() < deadline, process.communicate()
        time.sleep(0.01)
    time.sleep(seconds)
    process.kill()
    return process.communicate()[1]


def _assert_same(ours, theirs, except_for=_TIMES):
    assert ours[0] == theirs[0] == f"step-{_STEPS}"
    assert ours[1].keys() == theirs[1].keys()
    for name in theirs[1].keys() - set(except_for):
        value = theirs[1][name]
        np.testing.assert_array_equal(ours[1][name], value, err_msg=name)


def test_a_killed_run_ends_with_the_same_bits(whole, at_once):
    _, log = at_once.resumed[0]
    assert re.search(f"Resuming from .*{at_once.saved[0][-1]}", log)
    found = _last(at_once.model_dirs[0])
    _assert_same(found, _last(whole[0]), _TIMES + _SCORES)


def test_sigterm_saves_and_the_same_command_goes_on(whole, at_once):
    assert at_once.statuses[1] == 128 + signal.SIGTERM, at_once.logs[1]
    (name,) = at_once.saved[1]
    assert 1 <= int(name.removeprefix("step-")) < _STEPS
    model_dir = at_once.model_dirs[1]
    _assert_same(_last(model_dir), _last(whole[0]))
    # The checkpoint that the stop saved is gone, so it is part of no average.
    assert _saved(model_dir) == [f"step-{_STEPS}"]
    out, _ = at_once.resumed[1]
    assert re.search(f"Model: .*step-{_STEPS}\n", out)
    # A single checkpoint was scored, so the command averages none.
    command = f"bin/translate --model_dir={model_dir}"
    assert out.splitlines()[-1].strip() == command


def test_a_run_ends_with_how_to_use_what_it_has_scored(whole):
    model_dir, out = whole
    (scored,) = re.findall("^Model: average of (.*)$", out, re.M)
    count = len(scored.split(","))
    command = f"bin/translate --model_dir={model_dir} --average_last={count}"
    assert out.splitlines()[-1].strip() == command


def test_a_run_reports_its_scores_and_some_translations(whole):
    _, out = whole
    assert re.search(r"^dev BLEU \d+\.\d\d \(nrefs:1\|case:mixed", out, re.M)
    assert re.search(r"^test BLEU \d+\.\d\d \(", out, re.M)
    assert out.count("  reference  ") == 3


def test_a_run_counts_the_operations_of_its_batches(whole):
    directory = ModelDirectory(whole[0])
    settings = directory.settings()
    pairs, _ = token_files.load_pairs(directory.tokens)
    buckets = batching.make_buckets(
        pairs.source_lengths,
        pairs.target_lengths,
        settings.hparams.tokens_per_batch,
        num_buckets=settings.hparams.num_buckets,
    )
    plan = batching.BatchPlan(buckets, settings.hparams.seed)
    expected = 0
    for source_ids, target_ids in batching.training_batches(
        pairs, plan, first_step=0, end_step=_STEPS
    ):
        sizes = (*source_ids.shape, target_ids.shape[1])
        expected += flops.update_flops(
            settings.hparams, settings.vocabulary_size, *sizes
        )
    assert _last(whole[0])[1]["training_flops"] == expected
    assert f"matrix products: {expected:.2e} FLOPs\n" in whole[1]
    assert "in the paper, by time: base 3.3e+18, big 2.3e+19" in whole[1]
    assert "TFLOPS" not in whole[1]


def test_steps_and_precision_may_change(longer):
    assert _last(longer[0])[0] == f"step-{_STEPS + 2}"


def test_time_adds_up_to_an_estimate_of_the_cost(whole, longer):
    before, after = (
        float(_last(model_dir)[1]["device_seconds"])
        for model_dir, _ in (whole, longer)
    )
    assert 0 < before < after
    pattern = r"cost, (\d+\.\d\d) device hours at 9.5 TFLOPS"
    hours = re.search(pattern, longer[1])
    assert float(hours[1]) == pytest.approx(after / 3600, abs=0.02)


def test_one_command_gives_both_bleus_and_a_card(whole, tmp_path):
    status, out, errors = in_process.run(
        "evaluate",
        f"--model_dir={whole[0]}",
        "--average_last=2",
        "--xla=false",
        "--splits=test",
        f"--json={tmp_path / 'scores.json'}",
        f"--report={tmp_path / 'card'}",
    )
    assert status == 0, errors
    # The value that the run itself printed at its end.
    (value,) = re.findall(r"^test BLEU (\S+) \(", whole[1], re.M)
    assert re.search(rf"^  BLEU {value}\b.*tok:13a", out, re.M)
    # The target language is the suffix "target", which Moses does not know.
    assert "tok:moses-target-with-abbreviations-of-en" in out
    scores = json.loads((tmp_path / "scores.json").read_text("utf-8"))
    card = json.loads((tmp_path / "card.json").read_text("utf-8"))
    assert card | scores == card
    assert card["training"]["updates"] == _STEPS
    assert card["training"]["flops"] == _last(whole[0])[1]["training_flops"]
    assert f"| {value} " in (tmp_path / "card.md").read_text("utf-8")


def test_the_best_on_dev_is_kept_beside_the_last(whole):
    model_dir, _ = whole
    assert len(checkpoint_files.paths(model_dir / "checkpoints")) == 2
    assert len(checkpoint_files.paths(model_dir / "best")) == 1


def test_a_changed_setting_is_refused_by_name(whole, corpus):
    flags = _flags(corpus, whole[0], "--override=dropout=0.3")
    assert_refused(
        in_process.run("train", *flags),
        "was trained with dropout=0.0; received dropout=0.3",
    )


@pytest.fixture(scope="module")
def other_corpus(tmp_path_factory):
    folder = tmp_path_factory.mktemp("other")
    return tiny_run.write_corpus(folder, num_pairs=61)


def _assert_other_text_is_refused(flags):
    found = in_process.run("train", *flags)
    assert_refused(found, "was trained with different training text")


def test_other_text_is_refused(whole, other_corpus):
    _assert_other_text_is_refused(_flags(other_corpus, whole[0]))


def test_other_text_is_refused_without_the_tokens_too(
    copy, corpus, other_corpus
):
    shutil.rmtree(copy / "tokens")
    _assert_other_text_is_refused(_flags(other_corpus, copy))
    status, _, errors = in_process.run(
        "train", *_without_scores(_flags(corpus, copy))
    )
    assert status == 0, errors
    assert f"All {_STEPS} updates are done." in errors


def test_runs_share_a_cache_and_end_with_the_same_bits(
    whole, at_once, other_corpus
):
    logs, (model_dir, _) = at_once.logs, at_once.model_dirs
    assert sum("Tokenizing the training corpus" in log for log in logs) == 1
    assert sum("Using the tokens in" in log for log in logs) == 1
    for path in at_once.model_dirs:
        _assert_same(_last(path), _last(whole[0]), _TIMES + _SCORES)
        assert not (path / "tokens").exists()
    (copy,) = (path for path in at_once.cache.iterdir() if path.is_dir())
    status, _, log = in_process.run("train", *at_once.flags[0])
    assert status == 0, log
    assert f"All {_STEPS} updates are done." in log
    assert f"Using the tokens in {copy}." in log
    assert "Warning: " not in log
    cache = f"--cache_dir={at_once.cache}"
    _assert_other_text_is_refused(_flags(other_corpus, model_dir, cache))


def test_no_gain_on_dev_stops_a_run(corpus, tmp_path, monkeypatch):
    # It is not needed here.
    monkeypatch.setattr(run, "final_report", lambda *_, **__: "")
    flags = _flags(
        corpus,
        tmp_path / "model",
        _NO_RATE,
        "--evaluate_every_steps=2",
        "--patience=2",
    )
    status, _, errors = _train_on_one_core(*flags)
    assert status == 0, errors
    message = "No better score on dev in 2 evaluations: stopping at step 6"
    assert message in errors
    status, _, errors = _train_on_one_core(*flags)
    assert status == 0, errors
    assert _last(tmp_path / "model")[0] == "step-6"


def test_a_warm_start_begins_with_the_weights_of_another_model(whole, warm):
    model_dir, errors = warm
    assert "Starting from the weights of" in errors
    name, tensors = _last(model_dir)
    assert name == "step-1"
    for key, value in _last(whole[0])[1].items():
        if key.startswith("transformer/"):
            np.testing.assert_allclose(tensors[key], value, atol=1e-6)


def test_a_directory_alone_goes_on_where_its_path_looks_like_a_pattern(
    warm, tmp_path
):
    model_dir = shutil.copytree(warm[0], tmp_path / _LIKE_A_PATTERN)
    found = _train_on_one_core(f"--model_dir={model_dir}", "--steps=2")
    assert found[0] == 0, found[2]
    assert "Resuming from" in found[2]
    assert _last(model_dir)[0] == "step-2"


def test_a_loss_that_is_not_finite_stops_and_keeps_the_last_checkpoint(
    copy, corpus
):
    before = sorted((copy / "checkpoints").iterdir())
    flags = _flags(
        corpus,
        copy,
        "--override=learning_rate_scale=1e38",
        f"--steps={_STEPS + 30}",
    )
    assert_refused(
        _train_on_one_core(*_without_scores(flags)), "not finite at step"
    )
    assert sorted((copy / "checkpoints").iterdir()) == before


def test_a_full_disk_while_saving_keeps_the_checkpoints_that_were_good(
    copy, corpus
):
    before = {p: p.read_bytes() for p in (copy / "checkpoints").iterdir()}
    flags = _flags(corpus, copy, f"--steps={_STEPS + 1}", _NO_RATE)
    # No file of this process may be larger than half of a checkpoint's data.
    limit = min(len(v) for k, v in before.items() if ".data" in k.name) // 2
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (limit, hard))
    try:
        found = _train_on_one_core(*_without_scores(flags))
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert_refused(found, "cannot write the checkpoint")
    after = {p: p.read_bytes() for p in (copy / "checkpoints").iterdir()}
    assert after == before
