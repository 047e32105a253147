"""Writes the gradients of one batch, divided in some way, to .npz files.

Usage: replicas_check.py HOW FOLDER [DROPOUT-PRECISION ...], where HOW is one,
micro, mirrored or worker (TF_CONFIG then names the workers). Each of the others
makes FOLDER/DROPOUT-PRECISION.npz, and a checkpoint beside it. It is a program
because devices and workers are chosen once in a process.
"""

import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).absolute().parents[2] / "bin"))

import checkout  # noqa: F401, the code that this belongs to
import numpy as np
import tensorflow as tf

from t2t_lite.hparams import HParams
from t2t_lite.storage import checkpoints
from t2t_lite.training.strategies import make_strategy
from t2t_lite.training.trainer import Trainer

V = 23


def hparams(dropout):
    """Returns the settings of a tiny model."""
    return HParams(
        num_layers=2,
        d_model=12,
        d_ff=20,
        num_heads=3,
        d_k=4,
        d_v=4,
        dropout=dropout,
        max_length=16,
        warmup_steps=100,  # The first update is to be seen.
        guided_alignment=0.0 if dropout else 0.5,
    )


def batch():
    """Returns 6 pairs, every other one very short, then each one again."""
    generator = np.random.default_rng(1)
    source_ids = generator.integers(2, V, (6, 11)).astype(np.int32)
    target_ids = generator.integers(2, V, (6, 13)).astype(np.int32)
    source_ids[1::2, 2:], target_ids[1::2, 1:] = 0, 0
    return source_ids, target_ids


def links():
    """Returns which tokens of the pairs are linked, uint8 [6, 13, 11]."""
    source_ids, target_ids = batch()
    is_token = (target_ids > 0)[:, :, None] & (source_ids > 0)[:, None]
    drawn = np.random.default_rng(2).random(is_token.shape) < 0.2
    return (is_token & drawn).astype(np.uint8)


def twins():
    """Returns pairs of which neighbours, so both shards, are the same."""
    return tuple(np.repeat(ids, 2, axis=0) for ids in batch())


def write(output, strategy, dropout, precision, num_micro_batches=1):
    """Writes what one update computes to `output`."""
    trainer = Trainer(hparams(dropout), V, strategy, precision=precision)
    for n in range(num_micro_batches):
        if dropout:
            trainer.add(*twins(), n, num_micro_batches)
        else:
            trainer.add(*batch(), n, num_micro_batches, links())
    arrays = {
        f"gradient {weight.path}": gradient.numpy()
        for weight, gradient in zip(
            trainer.weights, trainer.gradients(), strict=True
        )
    }
    locals_ = trainer.strategy.experimental_local_results(
        trainer.strategy.run(
            lambda: [
                tf.identity(trainer.sums.gradients[0]),
                tf.identity(trainer.sums.loss),
            ]
        )
    )
    for n, (first_sum, loss_sum) in enumerate(locals_):
        arrays[f"replica {n} sum"] = first_sum.numpy()
        arrays[f"replica {n} loss"] = loss_sum.numpy()
    # The optimizer must come to the same weights from the same gradients.
    for weight in trainer.weights:
        arrays[f"start {weight.path}"] = weight.numpy()
    is_linked = None if dropout else links()
    update = trainer.update(*batch(), num_micro_batches, is_linked=is_linked)
    kinds = ("weight", trainer.weights), ("moment", trainer.optimizer.variables)
    for kind, variables in kinds:
        for variable in variables:
            first, *others = trainer.strategy.experimental_local_results(
                variable.value
            )
            arrays[f"{kind} {variable.path}"] = first.numpy()
            for other in others:
                np.testing.assert_array_equal(other, first, variable.path)
    arrays["norms"] = update.gradient_norms.numpy()
    np.savez(output, **arrays)
    checkpoints.write(f"{output}.step-1", trainer.tensors())


def main(how, folder, *cases):
    """Writes each case to a file in the folder."""
    if how == "mirrored":
        tf.config.set_logical_device_configuration(
            tf.config.list_physical_devices("CPU")[0],
            [tf.config.LogicalDeviceConfiguration()] * 2,
        )
    strategies = {"mirrored": "mirrored", "worker": "multi_worker"}
    strategy = make_strategy(strategies.get(how, "one_device"))
    for case in cases:
        dropout, _, precision = case.rpartition("-")
        write(
            f"{folder}/{case}.npz",
            strategy,
            float(dropout),
            precision,
            num_micro_batches=2 if how == "micro" else 1,
        )


if __name__ == "__main__":
    main(*sys.argv[1:])
