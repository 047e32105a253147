"""Times updates and searches on a GPU, or an update by parts on a CPU.

    python tests/benchmarks/gpu.py [peak] [update] [search] [parts]

An update has 25,000 target tokens in sentences of 32, as many source tokens,
V = 37,000, and dropout and label smoothing as in the preset. A search has
random weights, sources of 25 tokens, V = 32,000, beam 4, and exactly 32 tokens
out. `parts`, which must be named to be measured, divides an update of 2,048
tokens of transformer_base on the CPU: several parts run on one thread each (on
up to 16 cores), a single part on all cores. Each heading is a process of its
own. Below it are the seconds of the first call, in which graphs are traced and
compiled, and the median of later calls. If the peak is measured too, the share
of an update is printed: the peak is the speed of products of two 8192 x 8192
matrices in the same precision.
"""

import json
import os
import pathlib
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).absolute().parents[2] / "bin"))

import checkout  # noqa: F401, this checkout's packages
import machine
import measuring
import translating

_V, _LENGTH, _ROWS = 37_000, 32, 781
_CPU_V, _CPU_ROWS = 32_000, 64
_MICRO_BATCHES = (1, 2, 3, 6)
_SENTENCES = (32, 256, 1024)
_UPDATES = [
    {"preset": "transformer_base"},
    {"preset": "transformer_base", "xla": True},
    {"preset": "transformer_big"},
    {"preset": "transformer_big", "xla": True},
    *(
        {"preset": "transformer_base", "xla": True, "chunk_logits": chunk}
        for chunk in (20_000_000, 100_000_000, 400_000_000)
    ),
    {"preset": "transformer_base", "xla": True, "precision": "float32"},
]
_SEARCHES = [
    {"xla": True, "precision": "bfloat16"},
    {"xla": True, "precision": "float32"},
    {"xla": False, "precision": "bfloat16"},
    {"xla": False, "precision": "float32"},
]
_PARTS = [
    {"num_parts": num_parts, "precision": precision}
    for precision in ("float32", "bfloat16")
    for num_parts in (1, 2, 4, 8, 16)
]


def peak(precision):
    """Returns the most operations per second of 20 square products in a row."""
    import tensorflow as tf

    n, count = 8192, 20
    x = tf.cast(tf.random.normal((n, n), stddev=n**-0.5), precision)

    @tf.function(autograph=False)
    def products():
        y = x
        for _ in range(count):
            y = tf.matmul(y, x)
        return y[0, 0]

    seconds = min(
        measuring.timed(lambda: products().numpy())[0] for _ in range(5)
    )
    return {"flops": 2 * count * n**3 / seconds}


def update(preset, precision="bfloat16", xla=False, chunk_logits=None):
    """Returns an update's time and memory by its number of micro-batches."""
    from t2t_lite import hardware, hparams
    from t2t_lite.optimization import micro_batches
    from t2t_lite.optimization.strategies import make_strategy
    from t2t_lite.optimization.trainer import Trainer

    strategy = make_strategy("one_device")
    trainer = Trainer(
        hparams.PRESETS[preset],
        _V,
        strategy,
        precision=precision,
        xla=xla,
        chunk_logits=chunk_logits
        or micro_batches.chunk_logits(hardware.find_hardware()),
    )
    batch = random_batch(_V, _ROWS)
    found = {}
    for count in (1,) if xla else _MICRO_BATCHES:
        hardware.reset_peak_memory("GPU")
        first, later = first_and_later(
            lambda count=count: trainer.update(batch, count).loss.numpy()
        )
        peak_bytes = hardware.peak_memory_bytes("GPU")
        found[count] = {
            "first": first,
            "seconds": later,
            "GiB": peak_bytes / hardware.GIB,
        }
    return found


def parts(num_parts, precision):
    """Returns the time of an update on the CPU, in `num_parts` parts."""
    os.environ["CUDA_VISIBLE_DEVICES"] = ""
    from t2t_lite import cli, hparams

    cli.load_tensorflow(in_parts=num_parts > 1, for_training=True)
    from t2t_lite.optimization.trainer import Trainer

    trainer = Trainer(
        hparams.PRESETS["transformer_base"],
        _CPU_V,
        precision=precision,
        num_parts=num_parts,
    )
    batch = random_batch(_CPU_V, _CPU_ROWS)
    first, later = first_and_later(
        lambda: trainer.update(batch).loss.numpy(), calls=3
    )
    return {"first": first, "seconds": later}


def search(precision, xla):
    """Returns the time of a search by its number of sentences."""
    import tensorflow as tf

    found = {}
    for count in _SENTENCES:
        with tempfile.TemporaryDirectory() as folder:
            folder = pathlib.Path(folder)
            translating.prepare(folder, count, None, None)
            task = json.loads((folder / "task.json").read_text())
            translate = translating.make_search(folder, task, precision, xla)
        sources = tf.ragged.constant(task["sources"], tf.int32)
        first, later = first_and_later(
            lambda translate=translate, sources=sources: translate(
                sources
            ).scores_BW.numpy(),
            calls=3,
        )
        found[count] = {"first": first, "seconds": later}
    return found


def require_gpu():
    """Exits with one line if TensorFlow sees no GPU."""
    import tensorflow as tf

    if not tf.config.list_physical_devices("GPU"):
        sys.exit("TensorFlow sees no GPU here; `parts` needs none")


def random_batch(vocabulary_size, num_rows):
    """Returns a Batch of random ids."""
    import numpy as np

    from t2t_lite.optimization.sharding import Batch

    generator = np.random.default_rng(0)
    shape = 2, num_rows, _LENGTH
    ids = generator.integers(2, vocabulary_size, shape).astype(np.int32)
    return Batch(ids[0], ids[1])


def first_and_later(function, calls=5):
    """Returns the seconds of the first call, and the median of later ones."""
    first, _ = measuring.timed(function)
    return first, measuring.median_seconds(function, warm_up=1, calls=calls)


_WORK = {
    "peak": (peak, [{"precision": p} for p in ("bfloat16", "float32")]),
    "update": (update, _UPDATES),
    "search": (search, _SEARCHES),
    "parts": (parts, _PARTS),
}


def report(work, arguments, found, peaks):
    """Prints what was measured; adds a peak to `peaks`."""
    name = " ".join(f"{key}={value}" for key, value in arguments.items())
    if work == "peak":
        peaks[arguments["precision"]] = found["flops"]
        print(f"peak {name}: {found['flops'] / 1e12:.0f} TFLOP/s", flush=True)
        return
    print(f"{work} {name}", flush=True)
    rows = {"": found} if work == "parts" else found
    for count, values in rows.items():
        line = f"    {count:>5} " + "  ".join(
            f"{key} {value:.4g}" for key, value in values.items()
        )
        if work == "update":
            line += speed(arguments, values["seconds"], peaks)
        elif work == "search":
            line += f"  {int(count) / values['seconds']:.0f} sentences/s"
        print(line, flush=True)


def speed(arguments, seconds, peaks):
    """Returns the tokens and operations per second of an update, as text."""
    from t2t_lite.hparams import PRESETS
    from t2t_lite.model.flops import update_flops

    preset = PRESETS[arguments["preset"]]
    flops = (
        update_flops(
            preset, _V, _ROWS, source_length=_LENGTH, target_length=_LENGTH
        )
        / seconds
    )
    line = (
        f"  {_ROWS * _LENGTH / seconds:,.0f} target tokens/s  "
        f"{flops / 1e12:.0f} TFLOP/s"
    )
    peak_flops = peaks.get(arguments.get("precision", "bfloat16"))
    return f"{line}  {flops / peak_flops:.0%}" if peak_flops else line


def main():
    args = measuring.work_parser(__doc__, _WORK).parse_args()
    if args.measure:
        work, arguments = args.measure
        print(json.dumps(_WORK[work][0](**json.loads(arguments))))
        return
    chosen = args.work or ("peak", "update", "search")
    if {*chosen} - {"parts"}:
        require_gpu()
    machine.print_machine()
    peaks = {}
    for work in chosen:
        for arguments in _WORK[work][1]:
            command = [
                sys.executable,
                __file__,
                "--measure",
                work,
                json.dumps(arguments),
            ]
            report(work, arguments, measuring.measure(command), peaks=peaks)


if __name__ == "__main__":
    main()
