"""Measures the loss in chunks against all logits at once: memory and time.

    python tests/benchmarks/loss_benchmark.py [TOKENS ...]

For each number of target tokens (4096 when none is given) both ways compute the
loss and its gradients by the decoder's output and by the embedding, at
V = 37,000 and d_model = 512, of which one position in ten is padding. Each
measurement is a process of its own; the ways take turns for three rounds. What
is printed are the peak of the process' memory above what it held before,
the seconds of a call, the medians of both and their ratios. Linux only.

    python tests/benchmarks/loss_benchmark.py --update

prints what an update of transformer_base takes at 1024 tokens, both ways, and
the largest micro-batches of base and big that fit 16 GiB by the estimate of
t2t_lite.memory, with a plain loss at as many copies of its logits as it was
measured to keep.
"""

import argparse
import json
import pathlib
import statistics
import sys
import time

import by_turns

_ROOT = pathlib.Path(__file__).absolute().parents[2]
sys.path[:0] = [str(_ROOT / "bin"), str(_ROOT / "tests" / "helpers")]

import checkout  # noqa: F401, the code that this belongs to

_V, _D, _LENGTH, _PADDED = 37_000, 512, 32, 3
_ROUNDS = 3
_CALLS = 3
_WAYS = ("plain", "chunks")
# Copies of float32 logits that the plain loss keeps: 1.93 and 2.49 GB at 4096.
_PLAIN_COPIES = {"float32": 3.2, "bfloat16": 4.1}


def peak_and_seconds(function):
    """Returns (bytes above those held before, seconds of the fastest call)."""
    by_turns.forget_peak()
    before = by_turns.memory_bytes("VmRSS")
    seconds = []
    for _ in range(_CALLS):
        start = time.perf_counter()
        function()
        seconds.append(time.perf_counter() - start)
    return by_turns.memory_bytes("VmHWM") - before, min(seconds)


def all_at_once(x_BTD, embedding, target_ids, smoothing, loss_scale=1.0):
    """Returns what loss.projected_cross_entropy does, the plain way."""
    from keras import ops

    from t2t_lite.model import loss

    del loss_scale
    matrix_DV = ops.transpose(ops.cast(embedding, x_BTD.dtype))
    logits_BTV = ops.matmul(x_BTD, matrix_DV)
    return loss.cross_entropy(logits_BTV, target_ids, smoothing)


def measure_loss(way, tokens, precision):
    """Measures loss and gradients of `tokens` positions in this process."""
    import tensorflow as tf

    from t2t_lite.model import loss

    function = all_at_once if way == "plain" else loss.projected_cross_entropy
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

    gradients(x[:1], ids[:1])  # Traced, and the libraries set up.
    return peak_and_seconds(lambda: gradients(x, ids)[1][0].numpy())


def measure_update(way, tokens, precision):
    """Measures an update of transformer_base in this process."""
    import numpy as np

    from t2t_lite.hparams import PRESETS
    from t2t_lite.model import loss
    from t2t_lite.training.trainer import Trainer

    if way == "plain":
        loss.projected_cross_entropy = all_at_once
    trainer = Trainer(PRESETS["transformer_base"], _V, precision=precision)
    ids = np.random.default_rng(0).integers(2, _V, (tokens // _LENGTH, _LENGTH))
    ids = ids.astype(np.int32)
    trainer.update(ids[:1], ids[:1])
    return peak_and_seconds(lambda: trainer.update(ids, ids))


def compare(what, tokens, precision):
    """Prints both ways by turns, their medians and the ratios of these."""
    program = sys.executable, __file__, "--measure"
    results = by_turns.rounds(
        {way: [*program, what, way, tokens, precision] for way in _WAYS},
        _ROUNDS,
    )
    medians = {
        way: [statistics.median(values) for values in zip(*of, strict=True)]
        for way, of in results.items()
    }
    print(f"{what}, {tokens} tokens, {precision}")
    for way, (peak, seconds) in medians.items():
        print(f"  {way:6}  {peak / 1e9:5.2f} GB {seconds:6.2f} s")
    ratios = [b / a for a, b in zip(*medians.values(), strict=True)]
    print(f"  ratio   {ratios[0]:5.2f}    {ratios[1]:6.2f}")


def print_largest_micro_batches():
    """Prints how many target tokens fit 16 GiB, both ways."""
    from t2t_lite.hparams import PRESETS
    from t2t_lite.training import micro_batches

    for name in ("transformer_base", "transformer_big"):
        for precision in ("float32", "bfloat16"):

            def peak(way, tokens, name=name, precision=precision):
                estimate = micro_batches.peak_bytes(
                    PRESETS[name], _V, precision, tokens
                )
                if way == "chunks":
                    return estimate
                in_chunks = micro_batches.loss_bytes(PRESETS[name], _V, tokens)
                copies = _PLAIN_COPIES[precision]
                return estimate - in_chunks + 4 * copies * _V * tokens

            most = {
                way: max(
                    (n for n in range(0, 65_536, 256) if peak(way, n) < 2**34),
                    default=0,
                )
                for way in _WAYS
            }
            print(f"{name}, {precision}: {most} target tokens fit 16 GiB")


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("tokens", nargs="*", type=by_turns.at_least_1)
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
    print(by_turns.machine())
    what, default = ("update", 1024) if args.update else ("loss", 4096)
    for tokens in args.tokens or [default]:
        for precision in ("float32", "bfloat16"):
            compare(what, tokens, precision)
    if args.update:
        print_largest_micro_batches()


if __name__ == "__main__":
    main()
