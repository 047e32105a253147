"""Fits how time and memory grow with the sizes of the work.

    python tests/benchmarks/scaling.py [search] [update]

One size varies at a time, and the others stay the same: in an update of a model
with d_model 256, and in a search with it for exactly 32 tokens, without XLA.
Each measurement is a process of its own; memory is the peak of the process
above what it held before. Printed for each size are the seconds and megabytes,
and the exponents between the two largest values.
"""

import dataclasses
import json
import math
import pathlib
import statistics
import sys

sys.path.insert(0, str(pathlib.Path(__file__).absolute().parents[2] / "bin"))

import checkout  # noqa: F401, this checkout's packages
import machine
import measuring
import small_model

_TOKENS_OUT = 32
_DEFAULTS = {
    "source length": 64,
    "batch": 8,
    "beam": 4,
    "vocabulary": 8_000,
    "layers": 2,
}
_VALUES = {
    "source length": (16, 64, 256, 1024),
    "batch": (2, 8, 32, 128),
    "beam": (1, 4, 8, 16),
    "vocabulary": (2_000, 8_000, 32_000, 128_000),
    "layers": (1, 2, 4, 8),
}


def make_inputs(sizes):
    """Returns the HParams of these sizes, and a batch of random ids."""
    import numpy as np

    hparams = dataclasses.replace(
        small_model.hparams(),
        num_layers=sizes["layers"],
        max_length=sizes["source length"],
    )
    shape = sizes["batch"], sizes["source length"]
    ids = np.random.default_rng(0).integers(2, sizes["vocabulary"], shape)
    return hparams, ids.astype(np.int32)


def update(sizes):
    """Returns a function that does one update."""
    from t2t_lite.optimization.sharding import Batch
    from t2t_lite.optimization.trainer import Trainer

    hparams, ids = make_inputs(sizes)
    trainer = Trainer(hparams, sizes["vocabulary"])
    return lambda: trainer.update(Batch(ids, ids)).loss.numpy()


def search(sizes):
    """Returns a function that searches for 32 tokens, none of them EOS."""
    import tensorflow as tf
    from keras import ops

    from t2t_lite.decoding.beam_search import beam_search, with_log_probs
    from t2t_lite.model import cache as decoder_cache
    from t2t_lite.model.transformer import Transformer
    from t2t_lite.tensor import NEG_INF
    from t2t_lite.token_ids import EOS

    hparams, ids = make_inputs(sizes)
    model = Transformer(hparams, sizes["vocabulary"])
    model.build()
    W = sizes["beam"]

    def run(source_ids):
        step, cache = model.start_decoding(source_ids, W)

        def step_without_end(ids_BW, cache):
            logits_BWV, cache = step(ids_BW, cache)
            is_end_V = ops.arange(sizes["vocabulary"]) == EOS
            return ops.where(is_end_V, NEG_INF, logits_BWV), cache

        return beam_search(
            with_log_probs(step_without_end),
            cache,
            decoder_cache.reorder,
            max_lengths_B=ops.full(
                (ops.shape(source_ids)[0],), _TOKENS_OUT, "int32"
            ),
            max_length=_TOKENS_OUT,
            beam_width=W,
            alpha=0.6,
            eos=EOS,
        ).scores_BW

    graph = tf.function(
        run,
        input_signature=[tf.TensorSpec([None, None], tf.int32)],
        autograph=False,
    )
    return lambda: graph(ids).numpy()


_WORK = {"search": search, "update": update}


def measure(work, sizes):
    """Returns (seconds, peak bytes) of the work in this process."""
    # Sets up libraries and threads before the memory is first read.
    _WORK[work](_DEFAULTS | {"batch": 2, "source length": 16})()
    before = measuring.memory_bytes("VmRSS")
    measuring.reset_peak_memory()
    run = _WORK[work](sizes)
    run()
    seconds = statistics.median(measuring.timed(run)[0] for _ in range(3))
    peak = measuring.memory_bytes("VmHWM") - before
    return seconds, max(1, peak)


def compare(work, name, values):
    """Prints what the work takes at each value of a size, and the exponents."""
    found = []
    for value in values:
        sizes = json.dumps(_DEFAULTS | {name: value})
        found.append(
            measuring.measure(
                [sys.executable, __file__, "--measure", work, sizes]
            )
        )
    exponents = [
        math.log(last / before) / math.log(values[-1] / values[-2])
        for before, last in zip(*found[-2:], strict=True)
    ]
    shown = "  ".join(
        f"{value}: {seconds:.2f} s {peak / 1e6:.0f} MB"
        for value, (seconds, peak) in zip(values, found, strict=True)
    )
    print(
        f"{work:6}  {name:13}  {shown}  "
        f"time n^{exponents[0]:.2f}  memory n^{exponents[1]:.2f}",
        flush=True,
    )


def main():
    args = measuring.work_parser(__doc__, _WORK).parse_args()
    if args.measure:
        work, sizes = args.measure
        print(json.dumps(measure(work, json.loads(sizes))))
        return
    machine.print_machine()
    for work in args.work or _WORK:
        for name, values in _VALUES.items():
            if (work, name) != ("update", "beam"):
                compare(work, name, values)


if __name__ == "__main__":
    main()
