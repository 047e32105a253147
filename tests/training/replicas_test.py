"""An update is the same, however it is divided."""

import json
import subprocess
import sys

import binaries
import numpy as np
import pytest
import replicas_check
from paths import HELPERS

from t2t_lite.optimization.sharding import Batch
from t2t_lite.optimization.strategies import make_strategy
from t2t_lite.optimization.trainer import Trainer
from t2t_lite.storage import checkpoints

pytestmark = pytest.mark.slow
_CHECK = HELPERS / "replicas_check.py"
_TIMEOUT_S = 240
_PLAIN, _DROPPED = "0-float32", "0.5-bfloat16"  # Dropout and precision.


def _start(how, folder, *cases, **environment):
    return subprocess.Popen(
        [sys.executable, _CHECK, how, folder, *cases],
        env=binaries.environment(**environment),
        stderr=subprocess.PIPE,
        text=True,
    )


def _finish(*processes):
    for process in processes:
        _, errors = process.communicate(timeout=_TIMEOUT_S)
        assert process.returncode == 0, errors[-3000:]


def _read(folder, case=_PLAIN):
    return dict(np.load(folder / f"{case}.npz"))


@pytest.fixture(scope="module")
def trainer_of_one():
    """A trainer in this process, whose batches are not divided."""
    strategy = make_strategy("one_device")
    return Trainer(
        replicas_check.hparams(dropout=0.0), replicas_check.V, strategy
    )


@pytest.fixture
def trainer(trainer_of_one):
    """The same trainer, reset to before its first update."""
    trainer_of_one.state.reset()
    return trainer_of_one


@pytest.fixture(scope="module")
def one(trainer_of_one):
    """What the trainer with undivided batches computes."""
    trainer_of_one.state.reset()
    return replicas_check.results(trainer_of_one)


@pytest.fixture(scope="module")
def replicas(tmp_path_factory):
    """The folder with the results of two replicas."""
    folder = tmp_path_factory.mktemp("mirrored")
    _finish(_start("mirrored", folder, _PLAIN, _DROPPED))
    return folder


@pytest.fixture(scope="module")
def mirrored(replicas):
    return _read(replicas)


def _largest_difference(ours, theirs, kind):
    """Returns the largest difference of any tensor, relative to its norm."""
    names = [name for name in theirs if name.startswith(kind)]
    assert names
    return max(
        np.linalg.norm(ours[name] - theirs[name])
        / max(np.linalg.norm(theirs[name]), 1e-12)
        for name in names
        # The relative difference of a tensor near zero is only rounding.
        if np.linalg.norm(theirs[name]) > 1e-6
    )


def test_micro_batches_give_the_gradient_of_the_whole_batch(one, trainer):
    divided = replicas_check.gradients(trainer, num_micro_batches=2)
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
    folders = [tmp_path / f"worker{index}" for index in range(2)]
    for folder in folders:
        folder.mkdir()
    _finish(
        *[
            _start("worker", folder, _PLAIN, TF_CONFIG=configuration)
            for folder, configuration in zip(
                folders, configurations, strict=True
            )
        ]
    )
    for folder in folders:
        assert _largest_difference(_read(folder), one, "gradient") < 1e-4


def test_replicas_give_adam_the_gradient_of_the_whole_batch_once(one, mirrored):
    """With twice the gradient, Adam would move the weights just as far."""
    assert _largest_difference(mirrored, one, "moment") < 1e-4
    assert _largest_difference(mirrored, one, "norms") < 1e-4


def test_replicas_hold_the_same_weights_after_an_update(one, mirrored):
    # Adam divides by the root of the squared gradient, so where a gradient is
    # only rounding, so is the step: compare all weights together, not single
    # tensors. (replicas_check itself asserts that replicas hold the same.)
    names = [name for name in one if name.startswith("weight")]
    ours, theirs = (
        np.concatenate(
            [(a[n] - a[n.replace("weight", "start", 1)]).ravel() for n in names]
        )
        for a in (mirrored, one)
    )
    assert np.linalg.norm(ours - theirs) < 1e-4 * np.linalg.norm(theirs)


def test_two_replicas_in_bfloat16_write_what_one_in_float32_reads(
    replicas, trainer
):
    written = _read(replicas, _DROPPED)
    path = replicas / f"{_DROPPED}.step-1"
    trainer.state.restore(checkpoints.read(str(path)), "step-1")
    assert trainer.step == 1
    for weight in trainer.weights:
        np.testing.assert_array_equal(
            weight.numpy(), written[f"weight {weight.path}"]
        )


def test_a_mean_of_means_would_be_another_gradient(one, trainer):
    """The tests above can tell: the shards differ in their number of tokens."""
    means = []
    batch = replicas_check.linked_batch()
    for shard in range(2):
        trainer.add(Batch(*(rows[shard::2] for rows in batch)))
        means.append(trainer.gradients())
        trainer.clear()
    mean_of_means = {
        f"gradient {weight.path}": (first.numpy() + second.numpy()) / 2
        for weight, first, second in zip(trainer.weights, *means, strict=True)
    }
    assert _largest_difference(mean_of_means, one, "gradient") > 1e-2


def test_replicas_draw_masks_of_their_own(replicas):
    dropped = _read(replicas, _DROPPED)
    assert not np.allclose(dropped["replica 0 sum"], dropped["replica 1 sum"])
    assert dropped["replica 0 loss"] != dropped["replica 1 loss"]


def test_without_dropout_twin_shards_agree(mirrored):
    """So the test above would find equal sums if the masks were the same."""
    assert np.allclose(
        mirrored["replica 0 sum"], mirrored["replica 1 sum"], atol=1e-4
    )
