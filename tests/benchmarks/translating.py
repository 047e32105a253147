"""Times beam search: this package's, CTranslate2's and Hugging Face's.

    python tests/benchmarks/translating.py [--sentences=32]
    python tests/benchmarks/translating.py --model_dir=DIR --input=FILE

The first command searches with random weights of transformer_base, V = 32,000:
sources of 25 tokens, beam 4, exactly 32 tokens out. The second translates the
lines of a file with a trained model, each to its end. Neither has a length
penalty, because CTranslate2 defines it differently.

--peer_python=PYTHON, that of an environment with CTranslate2, also measures
CTranslate2, with the same weights; --hf_python, that of one with transformers
and torch, measures Hugging Face's `generate`, with random weights only.
--rounds is 3 by default.

Each measurement is a process of its own: the first call, in which XLA compiles,
by itself, then the median of three. Ratios are taken round by round. Outputs
that equal those of the first program are counted, except Hugging Face's, whose
model has weights of its own.
"""

import argparse
import dataclasses
import json
import operator
import pathlib
import statistics
import sys
import tempfile
from typing import NamedTuple

_HERE = pathlib.Path(__file__).absolute().parent
sys.path.insert(0, str(_HERE.parents[1] / "bin"))

import checkout  # noqa: F401, this checkout's packages
import machine
import measuring

_BEAM_WIDTH = 4
_VOCABULARY_SIZE, _SOURCE_LENGTH, _TARGET_LENGTH = 32_000, 25, 32


class Way(NamedTuple):
    """A way to search in this package."""

    precision: str
    xla: bool


class Peer(NamedTuple):
    """How CTranslate2 divides up the cores."""

    workers: int
    threads: int  # of each worker


# The outputs of all others are compared with those of the first one.
_WAYS = {
    "t2t_lite, XLA": Way("float32", xla=True),
    "t2t_lite, XLA, int8": Way("int8", xla=True),
    "t2t_lite": Way("float32", xla=False),
    "t2t_lite, bfloat16": Way("bfloat16", xla=False),
}
_REFERENCE = "t2t_lite, XLA"
_CTRANSLATE2 = {
    "CTranslate2, 2 x 1": Peer(workers=2, threads=1),
    "CTranslate2, 1 x 2": Peer(workers=1, threads=2),
}
_HF = "Hugging Face"


def prepare(folder, num_sentences, model_dir, lines_path):
    """Writes task.json and weights.npz, which all measurements read.

    Args:
        folder: where to write them.
        num_sentences: how many random sources, if there is no trained model.
        model_dir: of a trained model, or None.
        lines_path: of its text, or None.
    """
    import numpy as np

    task = {"num_tokens": None, "beam_width": _BEAM_WIDTH}
    if model_dir:
        model, sources = open_trained(model_dir, lines_path)
    else:
        model, sources = make_random(num_sentences)
        task["num_tokens"] = _TARGET_LENGTH
    task |= {
        "sources": sources,
        "hparams": dataclasses.asdict(model.hparams),
        "vocabulary_size": model.vocabulary_size,
    }
    (folder / "task.json").write_text(json.dumps(task))
    weights = {w.path: w.value.numpy() for w in model.trainable_variables}
    np.savez(folder / "weights.npz", **weights)


def open_trained(model_dir, lines_path):
    """Returns the model of a directory, and the ids of each line of a file."""
    from t2t_lite.storage.model_directory import ModelDirectory
    from t2t_lite_data import text_files

    directory = ModelDirectory(model_dir)
    model = directory.load_model().model
    lines = list(text_files.lines(str(lines_path)))
    return model, directory.vocabulary().encode(lines)


def make_random(num_sentences):
    """Returns transformer_base with random weights, and random sources."""
    import keras
    import numpy as np

    from t2t_lite.hparams import PRESETS
    from t2t_lite.model.transformer import Transformer

    keras.utils.set_random_seed(1)
    model = Transformer(PRESETS["transformer_base"], _VOCABULARY_SIZE)
    model.build()
    shape = num_sentences, _SOURCE_LENGTH
    sources = np.random.default_rng(0).integers(2, _VOCABULARY_SIZE, shape)
    return model, sources.tolist()


def search(folder, precision, xla, output):
    """Returns (seconds of the first search, median seconds of later ones)."""
    from t2t_lite import cli

    task = json.loads((folder / "task.json").read_text())
    # As bin/translate does.
    cli.load_tensorflow(in_parts=not xla)
    import tensorflow as tf

    translate = make_search(folder, task, precision, xla=xla)
    sources = tf.ragged.constant(task["sources"], tf.int32)
    first, ids_BT = measuring.timed(
        lambda: translate(sources).ids_BWT[:, 0].numpy()
    )
    output.write_text(json.dumps([until_end(ids) for ids in ids_BT.tolist()]))
    return first, measuring.median_seconds(
        lambda: translate(sources).scores_BW.numpy(), warm_up=0, calls=3
    )


def make_search(folder, task, precision, xla):
    """Returns a function from ids of sources to their Hypotheses."""
    import numpy as np

    from t2t_lite import hparams
    from t2t_lite.decoding.search import SearchOptions, ids_translator
    from t2t_lite.model.transformer import Transformer
    from t2t_lite.storage import model_directory

    settings = hparams.from_dict(task["hparams"])
    model = Transformer(
        settings,
        task["vocabulary_size"],
        dtype=model_directory.search_policy(precision),
    )
    model.build()
    weights = np.load(folder / "weights.npz")
    model_directory.assign(model.trainable_variables, weights, "weights.npz")
    if precision == "int8":
        model.search_in_int8()
    max_extra_length, constraint = settings.max_extra_length, None
    if task["num_tokens"]:
        max_extra_length = task["num_tokens"] - _SOURCE_LENGTH
        constraint = never_end
    return ids_translator(
        model,
        SearchOptions(task["beam_width"], 0.0, max_extra_length),
        xla,
        constraint=constraint,
    )


def never_end(batch):
    """Returns the Constraint that no hypothesis may end."""
    from keras import ops

    from t2t_lite.constraints.constrained_step import Constraint
    from t2t_lite.token_ids import EOS

    B = ops.shape(batch.source_ids_BS)[0]
    is_no_end_V = ops.arange(batch.num_target_ids) != EOS
    return Constraint(
        ops.zeros((B, batch.beam_width), "int32"),
        lambda state, _: state,
        lambda *_: is_no_end_V,
    )


def until_end(ids):
    """Returns the ids before EOS, without padding."""
    from t2t_lite.token_ids import EOS, PAD

    end = ids.index(EOS) if EOS in ids else len(ids)
    return [i for i in ids[:end] if i != PAD]


def commands(folder, peer_python, hf_python):
    """Returns the command of each measurement by its name."""
    found = {}
    for name, way in _WAYS.items():
        found[name] = [
            sys.executable,
            __file__,
            "--measure",
            folder,
            way.precision,
            int(way.xla),
            folder / f"{name}.json",
        ]
    if peer_python:
        for name, peer in _CTRANSLATE2.items():
            found[name] = [
                peer_python,
                _HERE / "ctranslate2_search.py",
                folder,
                peer.workers,
                peer.threads,
                folder / f"{name}.json",
            ]
    if hf_python:
        output = folder / f"{_HF}.json"
        found[_HF] = [hf_python, _HERE / "hf_search.py", folder, output]
    return found


def report(folder, results):
    """Prints medians, ratios to each of the peers, and equal outputs."""
    sources = json.loads((folder / "task.json").read_text())["sources"]
    outputs = {
        name: json.loads((folder / f"{name}.json").read_text())
        for name in results
    }
    for name, values in results.items():
        first, seconds = map(statistics.median, zip(*values, strict=True))
        line = (
            f"{name:24} {seconds:7.2f} s  {len(sources) / seconds:6.1f} "
            f"sentences/s  first call {first:6.2f} s"
        )
        if outputs[name]:
            same = sum(map(operator.eq, outputs[name], outputs[_REFERENCE]))
            line += f"  {same} outputs the same"
        for peer in (*_CTRANSLATE2, _HF):
            if peer in results and name in _WAYS:
                ratios = [
                    theirs[1] / ours[1]
                    for ours, theirs in zip(values, results[peer], strict=True)
                ]
                line += f"  {statistics.median(ratios):.2f} of {peer}"
        print(line)


def measure(folder, precision, xla, output):
    """Prints one measurement of this package, in this process."""
    print(
        json.dumps(
            search(
                pathlib.Path(folder),
                precision,
                xla=xla == "1",
                output=pathlib.Path(output),
            )
        )
    )


def parse_arguments():
    """Returns the parser, and the arguments that it has parsed."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--sentences", type=measuring.positive_int)
    parser.add_argument("--model_dir", type=measuring.existing_path)
    parser.add_argument("--input", type=measuring.existing_path)
    parser.add_argument("--peer_python", type=measuring.existing_path)
    parser.add_argument("--hf_python", type=measuring.existing_path)
    parser.add_argument("--rounds", type=measuring.positive_int, default=3)
    parser.add_argument("--measure", nargs=4, help=argparse.SUPPRESS)
    args = parser.parse_args()
    if bool(args.model_dir) != bool(args.input):
        parser.error("give --model_dir and --input together")
    if args.hf_python and args.model_dir:
        parser.error("--hf_python has no trained model: leave it out")
    if args.sentences and args.model_dir:
        parser.error("--sentences is of random weights: leave it out")
    return parser, args


def main():
    parser, args = parse_arguments()
    if args.measure:
        measure(*args.measure)
        return
    num_sentences = args.sentences or 32
    with tempfile.TemporaryDirectory() as folder:
        folder = pathlib.Path(folder)
        with measuring.usage_errors(parser):
            prepare(
                folder, num_sentences, args.model_dir, lines_path=args.input
            )
        machine.print_machine(f"beam {_BEAM_WIDTH}")
        report(
            folder,
            measuring.measure_rounds(
                commands(folder, args.peer_python, args.hf_python), args.rounds
            ),
        )


if __name__ == "__main__":
    main()
