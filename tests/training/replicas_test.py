"""However an update is divided, it is the same update."""

import json
import os
import subprocess
import sys

import binaries
import numpy as np
import pytest
import replicas_check
from paths import HELPERS

from t2t_lite.storage import checkpoints
from t2t_lite.training.trainer import Trainer

pytestmark = pytest.mark.slow
_CHECK = HELPERS / "replicas_check.py"
_TIMEOUT_S = 240


def _start(how, output, dropout=0.0, precision="float32", **environment):
    return subprocess.Popen(
        [sys.executable, _CHECK, how, output, str(dropout), precision],
        env={**os.environ, **environment},
        stderr=subprocess.PIPE,
        text=True,
    )


def _finish(*processes):
    for process in processes:
        _, errors = process.communicate(timeout=_TIMEOUT_S)
        assert process.returncode == 0, errors[-3000:]


def _result(how, folder, dropout=0.0):
    output = folder / f"{how}.npz"
    _finish(_start(how, output, dropout))
    return dict(np.load(output))


def _undistributed_result(how, folder):
    """Returns the same without a process of its own, which it does not need."""
    output = folder / f"{how}.npz"
    replicas_check.main(how, output, dropout=0.0, precision="float32")
    return dict(np.load(output))


@pytest.fixture(scope="module")
def one(tmp_path_factory):
    return _undistributed_result("one", tmp_path_factory.mktemp("one"))


@pytest.fixture(scope="module")
def mirrored(tmp_path_factory):
    return _result("mirrored", tmp_path_factory.mktemp("mirrored"))


def _largest_difference(ours, theirs, kind):
    """Returns the largest difference of a tensor, relative to its norm."""
    names = [name for name in theirs if name.startswith(kind)]
    assert names
    return max(
        np.linalg.norm(ours[name] - theirs[name])
        / max(np.linalg.norm(theirs[name]), 1e-12)
        for name in names
        # The keys' part of a softmax has no gradient but rounding.
        if np.linalg.norm(theirs[name]) > 1e-6
    )


def test_micro_batches_give_the_gradient_of_the_whole_batch(one, tmp_path):
    divided = _undistributed_result("micro", tmp_path)
    assert _largest_difference(divided, one, "gradient") < 1e-4


def test_replicas_give_the_gradient_of_the_whole_batch(one, mirrored):
    assert _largest_difference(mirrored, one, "gradient") < 1e-4


def test_two_workers_give_the_gradient_of_one(one, tmp_path):
    addresses = [f"127.0.0.1:{port}" for port in binaries.free_ports(2)]
    configurations = [
        json.dumps(
            {
                "cluster": {"worker": addresses},
                "task": {"type": "worker", "index": index},
            }
        )
        for index in range(2)
    ]
    outputs = [tmp_path / f"worker{index}.npz" for index in range(2)]
    _finish(
        *[
            _start("worker", output, TF_CONFIG=configuration)
            for output, configuration in zip(
                outputs, configurations, strict=True
            )
        ]
    )
    for output in outputs:
        divided = dict(np.load(output))
        assert _largest_difference(divided, one, "gradient") < 1e-4


def test_replicas_hold_the_same_weights_after_an_update(one, mirrored):
    # Adam divides by the root of the squared gradient, so where a gradient is
    # rounding alone so is the step: compare the whole, not single tensors.
    ours, theirs = (
        np.concatenate([a[n].ravel() for n in one if n.startswith("weight")])
        for a in (mirrored, one)
    )
    assert np.linalg.norm(ours - theirs) < 1e-4 * np.linalg.norm(theirs)


def test_two_replicas_in_bfloat16_write_what_one_in_float32_reads(tmp_path):
    output = tmp_path / "mirrored.npz"
    _finish(_start("mirrored", output, precision="bfloat16"))
    written = np.load(output)
    trainer = Trainer(replicas_check.hparams(dropout=0.0), replicas_check.V)
    trainer.restore(checkpoints.read(f"{output}.step-1"), "step-1")
    assert trainer.step == 1
    for weight in trainer.weights:
        np.testing.assert_array_equal(
            weight.numpy(), written[f"weight {weight.path}"]
        )


def test_a_mean_of_means_would_be_another_gradient(one):
    """The oracle can tell: shards of unlike lengths weigh their tokens."""
    means = []
    for shard in range(2):
        trainer = Trainer(replicas_check.hparams(dropout=0.0), replicas_check.V)
        trainer.add(*(ids[shard::2] for ids in replicas_check.batch()))
        means.append(trainer.gradients())
    mean_of_means = {
        f"gradient {weight.path}": (first.numpy() + second.numpy()) / 2
        for weight, first, second in zip(trainer.weights, *means, strict=True)
    }
    assert _largest_difference(mean_of_means, one, "gradient") > 1e-2


def test_replicas_draw_masks_of_their_own(tmp_path):
    dropped = _result("mirrored", tmp_path, dropout=0.5)
    assert not np.allclose(dropped["replica 0 sum"], dropped["replica 1 sum"])
    assert dropped["replica 0 loss"] != dropped["replica 1 loss"]


def test_without_dropout_twin_shards_agree(tmp_path):
    """What the test above would see if the masks were the same."""
    dropped = _result("mirrored", tmp_path, dropout=1e-9)
    assert np.allclose(
        dropped["replica 0 sum"], dropped["replica 1 sum"], atol=1e-4
    )
