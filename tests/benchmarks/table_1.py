"""Measures the layer types of the paper's Table 1 over growing lengths.

    python tests/benchmarks/table_1.py --picture=table_1.png

One layer of each type maps [1, n, d] to [1, n, d], forward, in float32. Time is
the best of several runs; memory is the growth of the process's peak. Each type
has a process of its own, in which n grows. Exponents are fitted to the larger
n, where the fastest-growing part dominates: an attention layer also has its
projections, which are O(n d^2).
"""

import json
import pathlib
import resource
import sys

import numpy as np
from absl import app, flags

sys.path.insert(0, str(pathlib.Path(__file__).absolute().parents[2] / "bin"))

import checkout  # noqa: F401, this checkout's packages
import machine
import measuring

FLAGS = flags.FLAGS
flags.DEFINE_list("lengths", "512,1024,2048,4096,8192", "The n, growing.")
flags.DEFINE_integer("d_model", 512, "d.")
flags.DEFINE_integer("window", 65, "r, of restricted self-attention.")
flags.DEFINE_integer("kernel", 3, "k, of the convolution.")
flags.DEFINE_integer("repeats", 15, "Runs, the fastest of which counts.")
flags.DEFINE_integer("fit_from", 2048, "The smallest n of the fit.")
flags.DEFINE_string("picture", None, "A PNG to draw; needs matplotlib.")
flags.DEFINE_enum(
    "layer",
    None,
    ["full", "restricted", "gru", "conv"],
    "Measures this type alone, in this process, and prints it as JSON.",
)

TITLES = {
    "full": "self-attention",
    "restricted": "restricted self-attention",
    "gru": "recurrent (GRU)",
    "conv": "convolutional",
}
PAPER_COMPLEXITY = {
    "full": "O(n² · d)",
    "restricted": "O(r · n · d)",
    "gru": "O(n · d²)",
    "conv": "O(k · n · d²)",
}


def make_layer(name):
    """Returns the Keras layer of a type of Table 1."""
    import keras

    from t2t_lite import MultiHeadAttention

    d, reach = FLAGS.d_model, FLAGS.window // 2
    heads = max(1, d // 64)
    if name == "full":
        return MultiHeadAttention(heads, 64)
    if name == "restricted":
        return MultiHeadAttention(heads, 64, window=(reach, reach))
    if name == "gru":
        return keras.layers.GRU(d, return_sequences=True)
    return keras.layers.Conv1D(d, FLAGS.kernel, padding="same")


def peak_mib():
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def measure(name):
    """Prints a line of JSON for each length: "n", "seconds" and "mib"."""
    import tensorflow as tf

    layer = make_layer(name)
    layer.build((1, None, FLAGS.d_model))
    run = tf.function(layer)
    run(tf.zeros([1, 64, FLAGS.d_model]))
    for n in map(int, FLAGS.lengths):
        x = tf.random.normal([1, n, FLAGS.d_model], seed=1)
        before = peak_mib()
        run(x).numpy()  # Traces, and reaches the peak.
        mib = peak_mib() - before
        seconds = min(
            measuring.timed(lambda x=x: run(x).numpy())[0]
            for _ in range(FLAGS.repeats)
        )
        print(json.dumps({"n": n, "seconds": seconds, "mib": mib}))


def measure_in_a_process(name):
    """Returns what `measure` prints in a process of its own."""
    process = measuring.run([sys.executable, *sys.argv, f"--layer={name}"])
    return [json.loads(line) for line in process.stdout.splitlines()]


def exponent(rows, quantity):
    """Returns e of quantity = c n^e, by least squares on the logarithms."""
    rows = [row for row in rows if row["n"] >= FLAGS.fit_from]
    n, y = ([row[key] for row in rows] for key in ("n", quantity))
    slope, _ = np.polyfit(np.log(n), np.log(np.maximum(y, 1e-9)), 1)
    return slope


def with_total_memory(rows):
    """Returns rows whose MiB are the growth of the peak since the start."""
    total, found = 0.0, []
    for row in rows:
        total += row["mib"]
        found.append(row | {"mib": total})
    return found


def as_text(results):
    lines = [
        f"d = {FLAGS.d_model}, r = {FLAGS.window}, k = {FLAGS.kernel}, "
        f"exponents from n = {FLAGS.fit_from}"
    ]
    for name, rows in results.items():
        times = " ".join(f"{1e3 * row['seconds']:9.2f}" for row in rows)
        mib = " ".join(f"{row['mib']:9.0f}" for row in rows)
        lines += [
            f"{TITLES[name]}, {PAPER_COMPLEXITY[name]}",
            "  n   " + " ".join(f"{row['n']:9d}" for row in rows),
            f"  ms  {times}   n^{exponent(rows, 'seconds'):.2f}",
            f"  MiB {mib}   n^{exponent(rows, 'mib'):.2f}",
        ]
    return "\n".join(lines)


def draw(results, path):
    """Draws time and memory over n, with the fitted exponents."""
    import matplotlib as mpl

    mpl.use("Agg")
    from matplotlib import pyplot

    figure, axes = pyplot.subplots(1, 2, figsize=(10, 4.2))
    for axis, quantity, unit in zip(
        axes, ("seconds", "mib"), ("seconds", "MiB"), strict=True
    ):
        for name, rows in results.items():
            axis.loglog(
                [row["n"] for row in rows],
                [row[quantity] for row in rows],
                marker="o",
                label=f"{TITLES[name]}, {PAPER_COMPLEXITY[name]}: "
                f"n^{exponent(rows, quantity):.2f}",
            )
        axis.set_xlabel("n, positions")
        axis.set_ylabel(unit)
        axis.set_xticks([row["n"] for row in rows])
        axis.set_xticklabels([row["n"] for row in rows])
        axis.minorticks_off()
        axis.legend(fontsize=8, frameon=False)
        axis.spines[["top", "right"]].set_visible(False)
    axes[0].set_title("Time of one layer")
    axes[1].set_title("Memory of one layer")
    figure.tight_layout()
    figure.savefig(path, dpi=150)


def main(_):
    if FLAGS.layer:
        measure(FLAGS.layer)
        return
    machine.print_machine()
    results = {
        name: with_total_memory(measure_in_a_process(name)) for name in TITLES
    }
    print(as_text(results))
    if FLAGS.picture:
        draw(results, FLAGS.picture)


if __name__ == "__main__":
    app.run(main)
