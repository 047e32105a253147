"""Compares the loss in chunks with the plain loss: memory and time.

    python tests/benchmarks/loss_benchmark.py [TOKENS ...]

The plain loss computes all logits at once. For each number of target tokens
(4096 by default), both ways compute the loss and its gradients with respect to
the decoder's output and the embedding, at V = 37,000 and d_model = 512; one
position in ten is padding. Each measurement is a process of its own, and the
ways take turns for three rounds. Printed are how far the process's peak memory
is above what it held before, the seconds of the fastest of three calls, the
medians of both and their ratios. Linux only.

    python tests/benchmarks/loss_benchmark.py --update

measures an update of transformer_base at 1024 tokens, both ways, and prints the
largest micro-batches of base and big that fit in 16 GiB by the estimate of
t2t_lite.optimization.micro_batches. For the plain loss, the estimate counts as
many copies of the logits as that loss was measured to keep.
"""

import argparse
import json
import pathlib
import statistics
import sys

_ROOT = pathlib.Path(__file__).absolute().parents[2]
sys.path[:0] = [str(_ROOT / "bin"), str(_ROOT / "tests" / "helpers")]

import checkout  # noqa: F401, this checkout's packages
import machine
import measuring

_V, _D, _LENGTH, _PADDED = 37_000, 512, 32, 3
_ROUNDS = 3
_CALLS = 3
_WAYS = ("plain", "chunks")
# Copies of float32 logits that the plain loss keeps: 1.93 and 2.49 GB at 4096.
_PLAIN_COPIES = {"float32": 3.2, "bfloat16": 4.1}


def peak_and_seconds(function):
    """Returns (peak bytes above those held before, seconds of fastest call)."""
    measuring.reset_peak_memory()
    before = measuring.memory_bytes("VmRSS")
    seconds = [measuring.timed(function)[0] for _ in range(_CALLS)]
    return measuring.memory_bytes("VmHWM") - before, min(seconds)


def plain_cross_entropy(
    x_BTD,
    embedding,
    target_ids,
    label_smoothing,
    loss_scale=None,
    chunk_logits=None,
):
    """Returns what loss.projected_cross_entropy does, from all the logits."""
    from keras import ops

    from t2t_lite.model import loss

    del loss_scale, chunk_logits
    matrix_DV = ops.transpose(ops.cast(embedding, x_BTD.dtype))
    logits_BTV = ops.matmul(x_BTD, matrix_DV)
    return loss.cross_entropy(logits_BTV, target_ids, label_smoothing)


def measure_loss(way, tokens, precision):
    """Measures loss and gradients of `tokens` positions in this process."""
    import tensorflow as tf

    from t2t_lite.model import loss

    function = (
        plain_cross_entropy if way == "plain" else loss.projected_cross_entropy
    )
    rows = tokens // _LENGTH
    embedding = tf.Variable(tf.random.normal((_V, _D), stddev=_D**-0.5))
    x = tf.cast(tf.random.normal((rows, _LENGTH, _D)), precision)
    ids = tf.random.uniform((rows, _LENGTH), 1, _V, tf.int32)
    ids *= tf.cast(tf.range(_LENGTH) < _LENGTH - _PADDED, tf.int32)

    @tf.function(
        input_signature=[
            tf.TensorSpec([None, None, _D], precision),
            tf.TensorSpec([None, None], tf.int32),
        ],
        autograph=False,
    )
    def gradients(x, ids):
        with tf.GradientTape() as tape:
            tape.watch(x)
            total, _ = function(x, embedding, ids, 0.1)
        return tape.gradient(total, [x, embedding])

    gradients(x[:1], ids[:1])  # Traces, and sets libraries up.
    return peak_and_seconds(lambda: gradients(x, ids)[1][0].numpy())


def measure_update(way, tokens, precision):
    """Measures an update of transformer_base in this process."""
    import numpy as np

    from t2t_lite.hparams import PRESETS
    from t2t_lite.model import loss
    from t2t_lite.optimization.sharding import Batch
    from t2t_lite.optimization.trainer import Trainer

    if way == "plain":
        loss.projected_cross_entropy = plain_cross_entropy
    trainer = Trainer(PRESETS["transformer_base"], _V, precision=precision)
    ids = np.random.default_rng(0).integers(2, _V, (tokens // _LENGTH, _LENGTH))
    ids = ids.astype(np.int32)
    trainer.update(Batch(ids[:1], ids[:1]))
    return peak_and_seconds(lambda: trainer.update(Batch(ids, ids)))


def compare(what, tokens, precision):
    """Prints what both ways take, their medians and the medians' ratios."""
    program = sys.executable, __file__, "--measure"
    results = measuring.measure_rounds(
        {way: [*program, what, way, tokens, precision] for way in _WAYS},
        _ROUNDS,
    )
    medians = {
        way: [statistics.median(values) for values in zip(*pairs, strict=True)]
        for way, pairs in results.items()
    }
    print(f"{what}, {tokens} tokens, {precision}")
    for way, (peak, seconds) in medians.items():
        print(f"  {way:6}  {peak / 1e9:5.2f} GB {seconds:6.2f} s")
    ratios = [b / a for a, b in zip(*medians.values(), strict=True)]
    print(f"  ratio   {ratios[0]:5.2f}    {ratios[1]:6.2f}")


def print_largest_micro_batches():
    """Prints how many target tokens fit in 16 GiB, both ways."""
    for name in ("transformer_base", "transformer_big"):
        for precision in ("float32", "bfloat16"):
            most = {way: fitting_tokens(way, name, precision) for way in _WAYS}
            print(f"{name}, {precision}: {most} target tokens fit 16 GiB")


def fitting_tokens(way, preset, precision):
    """Returns the most tokens, in steps of 256, that 16 GiB hold."""
    tokens = 0
    while estimated_bytes(way, preset, precision, tokens=tokens + 256) < 2**34:
        tokens += 256
    return tokens


def estimated_bytes(way, preset, precision, tokens):
    """Returns the estimated peak of an update in micro-batches of `tokens`."""
    from t2t_lite.hardware import Hardware
    from t2t_lite.hparams import PRESETS
    from t2t_lite.model import loss
    from t2t_lite.optimization import micro_batches

    hparams = PRESETS[preset]
    one_core = Hardware("CPU", 2**34, num_cores=1)
    peak = micro_batches.peak_bytes(
        hparams, _V, precision, hardware=one_core, tokens=tokens
    )
    if way == "chunks":
        return peak
    logits = min(tokens * _V, loss.CHUNK_LOGITS)
    in_chunks = micro_batches.loss_bytes(hparams, _V, logits)
    return peak - in_chunks + 4 * _PLAIN_COPIES[precision] * _V * tokens


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("tokens", nargs="*", type=measuring.positive_int)
    parser.add_argument("--update", action="store_true")
    parser.add_argument("--measure", nargs=4, help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.measure:
        what, way, tokens, precision = args.measure
        measure = {"loss": measure_loss, "update": measure_update}[what]
        print(json.dumps(measure(way, int(tokens), precision)))
        return
    if args.update and args.tokens:
        parser.error("--update is of 1024 tokens")
    machine.print_machine()
    what, default = ("update", 1024) if args.update else ("loss", 4096)
    for tokens in args.tokens or [default]:
        for precision in ("float32", "bfloat16"):
            compare(what, tokens, precision)
    if args.update:
        print_largest_micro_batches()


if __name__ == "__main__":
    main()
