"""Times beam search, CTranslate2's with the same weights, and Hugging Face's.

    python tests/benchmarks/translating.py [--sentences=32]
    python tests/benchmarks/translating.py --model_dir=DIR --input=FILE

The first searches with random weights of transformer_base, V = 32,000: sources
of 25 tokens, beam 4, exactly 32 tokens out. The second translates the lines of
a file by a trained model, each to its end. Both are without length penalty, for
CTranslate2 has another one. It is measured too with --peer_python=PYTHON, that
of an environment that has it; in the first way Hugging Face's `generate` with
--hf_python, one that has transformers and torch. --rounds is 3.

Each measurement is a process of its own: the first call, in which XLA compiles,
by itself, then the median of three. Ratios are taken round by round, and the
outputs that are the same as the first one's are counted (Hugging Face's model
has weights of its own).
"""

import argparse
import dataclasses
import json
import operator
import pathlib
import statistics
import sys
import tempfile
import time

import by_turns

HERE = pathlib.Path(__file__).absolute().parent
sys.path.insert(0, str(HERE.parents[1] / "bin"))

import checkout  # noqa: F401, the code that this belongs to

_BEAM_WIDTH = 4
_VOCABULARY_SIZE, _SOURCE_LENGTH, _TARGET_LENGTH = 32_000, 25, 32
_WAYS = {  # Of this package: precision, and whether XLA compiles.
    "t2t_lite, XLA": ("float32", True),
    "t2t_lite": ("float32", False),
    "t2t_lite, bfloat16": ("bfloat16", False),
}
_PEERS = {  # Workers, and threads of each.
    "CTranslate2, 2 x 1": (2, 1),
    "CTranslate2, 1 x 2": (1, 2),
}
_HF = "Hugging Face"


def prepare(folder, num_sentences, model_dir, lines_path):
    """Writes task.json and weights.npz: what all measurements read."""
    import keras
    import numpy as np

    from t2t_lite.hparams import PRESETS
    from t2t_lite.model.transformer import Transformer
    from t2t_lite.storage.model_directory import ModelDirectory
    from t2t_lite_data import text_files

    keras.utils.set_random_seed(1)
    task = {"num_tokens": None, "beam_width": _BEAM_WIDTH}
    if model_dir:
        directory = ModelDirectory(model_dir)
        model, _ = directory.load_model()
        lines = list(text_files.lines(str(lines_path)))
        sources = directory.vocabulary().encode(lines)
    else:
        model = Transformer(PRESETS["transformer_base"], _VOCABULARY_SIZE)
        model.build()
        shape = num_sentences, _SOURCE_LENGTH
        sources = np.random.default_rng(0).integers(2, _VOCABULARY_SIZE, shape)
        sources, task["num_tokens"] = sources.tolist(), _TARGET_LENGTH
    task |= {
        "sources": sources,
        "hparams": dataclasses.asdict(model.hparams),
        "vocabulary_size": model.vocabulary_size,
    }
    (folder / "task.json").write_text(json.dumps(task))
    weights = {w.path: w.value.numpy() for w in model.trainable_variables}
    np.savez(folder / "weights.npz", **weights)


def search(folder, precision, xla, output):
    """Returns (seconds of the first call, of a later one) of our search."""
    from t2t_lite import cli

    task = json.loads((folder / "task.json").read_text())
    cli.load_tensorflow(num_parts=1 if xla else 2)  # As bin/translate does.
    import numpy as np
    import tensorflow as tf
    from keras import ops

    from t2t_lite import hparams
    from t2t_lite.decoding import search as decoding
    from t2t_lite.decoding.beam_search import Constraint
    from t2t_lite.model.transformer import Transformer
    from t2t_lite.storage import model_directory
    from t2t_lite.token_ids import EOS

    settings = hparams.from_dict(task["hparams"])
    model = Transformer(
        settings,
        task["vocabulary_size"],
        dtype=model_directory.policy(precision),
    )
    model.build()
    weights = np.load(folder / "weights.npz")
    model_directory.assign(model.trainable_variables, weights, "weights.npz")

    def never_ends(source_ids, _, W):
        is_no_end_V = ops.arange(task["vocabulary_size"]) != EOS
        return Constraint(
            ops.zeros((ops.shape(source_ids)[0], W), "int32"),
            lambda state, _: state,
            lambda *_: is_no_end_V,
        )

    extra, constraint = settings.max_extra_length, None
    if task["num_tokens"]:
        extra, constraint = task["num_tokens"] - _SOURCE_LENGTH, never_ends
    translate = decoding.ids_translator(
        model,
        decoding.SearchOptions(task["beam_width"], 0.0, extra),
        xla,
        constraint=constraint,
    )
    sources = tf.ragged.constant(task["sources"], tf.int32)
    start = time.perf_counter()
    found = translate(sources).ids_BWT[:, 0].numpy()
    first = time.perf_counter() - start
    ends = [row.index(EOS) if EOS in row else None for row in found.tolist()]
    ids = [
        [i for i in row[:end] if i]
        for row, end in zip(found.tolist(), ends, strict=True)
    ]
    output.write_text(json.dumps(ids))
    return first, by_turns.median_seconds(
        lambda: translate(sources).scores_BW.numpy(), warm_up=0, calls=3
    )


def commands(folder, peer_python, hf_python):
    """Returns the command of each measurement by its name."""
    ours = [sys.executable, __file__, "--measure", folder]
    found = {
        name: [*ours, precision, int(xla), folder / f"{name}.json"]
        for name, (precision, xla) in _WAYS.items()
    }
    if peer_python:
        found |= {
            name: [
                *(peer_python, HERE / "ctranslate2_search.py", folder),
                *(*sizes, folder / f"{name}.json"),
            ]
            for name, sizes in _PEERS.items()
        }
    if hf_python:
        output = folder / f"{_HF}.json"
        found[_HF] = [hf_python, HERE / "hf_search.py", folder, output]
    return found


def report(folder, results):
    """Prints medians, ratios to each of the peers, and equal outputs."""
    sources = json.loads((folder / "task.json").read_text())["sources"]
    outputs = {
        name: json.loads((folder / f"{name}.json").read_text())
        for name in results
    }
    reference = next(iter(outputs.values()))
    print(f"{by_turns.machine()}; {len(sources)} sentences, beam {_BEAM_WIDTH}")
    for name, values in results.items():
        first, seconds = map(statistics.median, zip(*values, strict=True))
        line = (
            f"{name:24} {seconds:7.2f} s  {len(sources) / seconds:6.1f} "
            f"sentences/s  first call {first:6.2f} s"
        )
        if outputs[name]:
            same = sum(map(operator.eq, outputs[name], reference))
            line += f"  {same} outputs the same"
        for peer in (*_PEERS, _HF):
            if peer in results and name in _WAYS:
                ratios = [
                    theirs[1] / ours[1]
                    for ours, theirs in zip(values, results[peer], strict=True)
                ]
                line += f"  {statistics.median(ratios):.2f} of {peer}"
        print(line)


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--sentences", type=by_turns.at_least_1)
    parser.add_argument("--model_dir", type=by_turns.existing)
    parser.add_argument("--input", type=by_turns.existing)
    parser.add_argument("--peer_python", type=by_turns.existing)
    parser.add_argument("--hf_python", type=by_turns.existing)
    parser.add_argument("--rounds", type=by_turns.at_least_1, default=3)
    parser.add_argument("--measure", nargs=4, help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.measure:
        folder, precision, xla, output = args.measure
        paths = pathlib.Path(folder), pathlib.Path(output)
        print(json.dumps(search(paths[0], precision, xla == "1", paths[1])))
        return
    if bool(args.model_dir) != bool(args.input):
        parser.error("give --model_dir and --input together")
    if args.hf_python and args.model_dir:
        parser.error("--hf_python has no trained model: leave it out")
    if args.sentences and args.model_dir:
        parser.error("--sentences is of random weights: leave it out")
    with tempfile.TemporaryDirectory() as folder:
        folder = pathlib.Path(folder)
        with by_turns.refusing(parser):
            prepare(folder, args.sentences or 32, args.model_dir, args.input)
        report(
            folder,
            by_turns.rounds(
                commands(folder, args.peer_python, args.hf_python), args.rounds
            ),
        )


if __name__ == "__main__":
    main()
