"""Writes what replicas or workers compute for one batch to .npz files.

Usage: replicas_check.py HOW FOLDER [DROPOUT-PRECISION ...], where HOW is
mirrored, or worker if TF_CONFIG names workers. Each case, such as 0.5-bfloat16,
makes FOLDER/DROPOUT-PRECISION.npz and a checkpoint beside it; a worker writes
only gradients. It is a program because devices and workers can be chosen only
once per process.
"""

import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).absolute().parents[2] / "bin"))

import checkout  # noqa: F401, this checkout's packages
import numpy as np
import tensorflow as tf

from t2t_lite.hparams import HParams
from t2t_lite.optimization.sharding import Batch
from t2t_lite.optimization.strategies import make_strategy
from t2t_lite.optimization.trainer import Trainer
from t2t_lite.storage import checkpoints

V = 23


def hparams(dropout):
    """Returns the settings of a tiny model."""
    return HParams(
        num_layers=1,
        d_model=12,
        d_ff=20,
        num_heads=3,
        d_k=4,
        d_v=4,
        dropout=dropout,
        max_length=16,
        warmup_steps=100,  # Makes the first update large enough to see.
        guided_alignment=0.0 if dropout else 0.5,
    )


def batch():
    """Returns 6 pairs, every other one very short."""
    generator = np.random.default_rng(1)
    source_ids = generator.integers(2, V, (6, 11)).astype(np.int32)
    target_ids = generator.integers(2, V, (6, 13)).astype(np.int32)
    source_ids[1::2, 2:], target_ids[1::2, 1:] = 0, 0
    return Batch(source_ids, target_ids)


def linked_batch():
    """Returns the pairs, and which of their tokens are linked."""
    source_ids, target_ids, _ = batch()
    is_token = (target_ids > 0)[:, :, None] & (source_ids > 0)[:, None]
    drawn = np.random.default_rng(2).random(is_token.shape) < 0.2
    return Batch(source_ids, target_ids, (is_token & drawn).astype(np.uint8))


def twins():
    """Returns each pair twice in a row, so that both shards are the same."""
    source_ids, target_ids, _ = batch()
    return Batch(source_ids.repeat(2, axis=0), target_ids.repeat(2, axis=0))


def gradients(trainer, num_micro_batches=1):
    """Returns the batch's gradient for each weight, by name."""
    for n in range(num_micro_batches):
        trainer.add(linked_batch(), n, num_micro_batches)
    found = {
        f"gradient {weight.path}": gradient.numpy()
        for weight, gradient in zip(
            trainer.weights, trainer.gradients(), strict=True
        )
    }
    trainer.clear()
    return found


def sums_of_replicas(trainer):
    """Returns what each replica of this process sums over the twins."""
    trainer.add(twins())
    locals_ = trainer.strategy.experimental_local_results(
        trainer.strategy.run(
            lambda: [
                tf.identity(trainer.graphs.sums.gradients[0]),
                tf.identity(trainer.graphs.sums.loss),
            ]
        )
    )
    found = {}
    for n, (first_sum, loss_sum) in enumerate(locals_):
        found[f"replica {n} sum"] = first_sum.numpy()
        found[f"replica {n} loss"] = loss_sum.numpy()
    trainer.clear()
    return found


def update(trainer):
    """Returns weights before and after an update, Adam's state, and norms."""
    found = {
        f"start {weight.path}": weight.numpy() for weight in trainer.weights
    }
    norms = trainer.update(linked_batch()).gradient_norms
    kinds = (
        ("weight", trainer.weights),
        ("moment", trainer.state.optimizer.variables),
    )
    for kind, variables in kinds:
        for variable in variables:
            first, *others = trainer.strategy.experimental_local_results(
                variable.value
            )
            found[f"{kind} {variable.path}"] = first.numpy()
            for other in others:
                np.testing.assert_array_equal(other, first, variable.path)
    return found | {"norms": norms.numpy()}


def results(trainer):
    """Returns all arrays that are compared, by name."""
    return gradients(trainer) | sums_of_replicas(trainer) | update(trainer)


def main(how, folder, *cases):
    """Writes each case to a file in the folder."""
    # Each graph runs once or twice; optimizing it would take longer.
    tf.config.optimizer.set_experimental_options(
        {"disable_meta_optimizer": True}
    )
    if how == "mirrored":
        tf.config.set_logical_device_configuration(
            tf.config.list_physical_devices("CPU")[0],
            [tf.config.LogicalDeviceConfiguration()] * 2,
        )
    strategies = {"mirrored": "mirrored", "worker": "multi_worker"}
    strategy = make_strategy(strategies[how])
    for case in cases:
        dropout, _, precision = case.rpartition("-")
        settings = hparams(float(dropout))
        trainer = Trainer(settings, V, strategy, precision=precision)
        if how == "worker":
            np.savez(f"{folder}/{case}.npz", **gradients(trainer))
            continue
        np.savez(f"{folder}/{case}.npz", **results(trainer))
        checkpoints.write(f"{folder}/{case}.step-1", trainer.state.tensors())


if __name__ == "__main__":
    main(*sys.argv[1:])
