"""Compares imported models with Marian itself, in nats per token.

    python tests/benchmarks/marian_peer.py --peer_python=PYTHON
    python tests/benchmarks/marian_peer.py --peer_python=PYTHON \\
        --model=FOLDER --source=FILE --target=FILE

PYTHON is that of an environment with pymarian (`pip install pymarian`). Without
--model, tiny random models are compared: with one vocabulary and with two, tied
and untied, with relu, swish and gelu, pre- and post-norm, with and without a
projection, with layers that share weights, and with a map of pieces to ids.
With --model, a folder with one decoder.yml, one model of Marian is compared on
the given pairs: a line of --target translates the same line of --source.

Each line of output is a model, with the largest and the mean difference between
the log probabilities of a pair, per token. Anything above 1e-4 is an error.

--golden prints Marian's scores of the tiny models, for
tests/formats/marian_test.py. --beam_width=N compares translations too, found by
a beam of N without a length penalty. Those of pre-norm models may differ:
marian-decoder does not normalize keys and values as training does. Marian's
beam also drops finished hypotheses that rank below its width, though they may
be better than all that it finds later.
"""

import argparse
import json
import os
import pathlib
import sys
import tempfile
from typing import NamedTuple

import measuring

_ROOT = pathlib.Path(__file__).absolute().parents[2]
sys.path[:0] = [str(_ROOT / "bin"), str(_ROOT / "tests" / "helpers")]

import checkout  # noqa: F401, this checkout's packages
import numpy as np
import tiny_marian

_TOLERANCE = 1e-4
_PAIRS_AT_ONCE = 32


class Case(NamedTuple):
    """A model, and pairs to compare."""

    folder: pathlib.Path  # with a decoder.yml
    sources: list[str]
    targets: list[str]


def tiny_cases(folder):
    """Returns Cases by name: tiny_marian's models, and one with a map."""
    for name in tiny_marian.MODELS:
        tiny_marian.write(folder / name, *tiny_marian.make(name))
    write_map(folder / "map")
    lines = [*tiny_marian.SOURCES], [*tiny_marian.TARGETS]
    return {
        name: Case(folder / name, *lines)
        for name in (*tiny_marian.MODELS, "map")
    }


def write_map(folder):
    """Writes a tiny model whose ids are in vocab.yml, in another order."""
    tiny_marian.write(folder, *tiny_marian.make("tied"))
    (folder / "target.spm").write_bytes(tiny_marian.SMALL)
    pieces = tiny_marian.pieces_of(tiny_marian.SMALL)
    tiny_marian.write_map(folder / "vocab.yml", pieces[:2] + pieces[:1:-1])
    tiny_marian.write_config(folder, vocabs=["vocab.yml"] * 2)


def read_lines(path):
    return path.read_text("utf-8").removesuffix("\n").split("\n")


def files_of(folder):
    """Returns [model, source vocabulary, target vocabulary], as paths."""
    import yaml

    (path,) = folder.glob("*decoder.yml")
    config = yaml.safe_load(path.read_text("utf-8"))
    names = [*config["models"], *config["vocabs"]]
    return [folder / os.path.basename(name) for name in names]


class Segmentation:
    """Marian's input and output: text, or pieces if it has only their ids."""

    def __init__(self, vocabulary, side):
        self.is_needed = vocabulary.suffix != ".spm"
        if self.is_needed:
            import sentencepiece

            self.processor = sentencepiece.SentencePieceProcessor(
                model_file=str(vocabulary.with_name(f"{side}.spm"))
            )

    def cut(self, lines):
        """Returns lines as Marian reads them."""
        if not self.is_needed:
            return lines
        return list(map(" ".join, self.processor.encode(lines, out_type=str)))

    def join(self, lines):
        """Returns the text of lines that Marian wrote."""
        if not self.is_needed:
            return lines
        return self.processor.decode([line.split(" ") for line in lines])


def run_marian(peer_python, command, case, *options):
    """Returns the lines that one of Marian's programs writes.

    Args:
        peer_python: Python of an environment with pymarian.
        command: "score" or "decode".
        case: Case.
        *options: other options of the command.
    """
    model, *vocabularies = files_of(case.folder)
    sides = {"source": case.sources, "target": case.targets}
    given = ["-m", model, "-v", *vocabularies, *options, "--quiet"]
    given += ["--cpu-threads", os.cpu_count(), "-w", 500]
    with tempfile.TemporaryDirectory() as temporary:
        paths = []
        for side, vocabulary in zip(sides, vocabularies, strict=True):
            lines = Segmentation(vocabulary, side).cut(sides[side])
            paths.append(pathlib.Path(temporary) / side)
            text = "".join(f"{line}\n" for line in lines)
            paths[-1].write_text(text, "utf-8")
        read = ["-t", *paths] if command == "score" else ["-i", paths[0]]
        process = measuring.run(
            [peer_python, "-m", "pymarian", command, *given, *read]
        )
    return process.stdout.removesuffix("\n").split("\n")


def marian_scores(peer_python, case):
    """Returns Marian's log probability of each target."""
    return np.array([*map(float, run_marian(peer_python, "score", case))])


def marian_translations(peer_python, case, beam_width):
    """Returns Marian's best translations, without a length penalty."""
    options = ["-b", beam_width, "-n", 0, "--allow-unk"]
    lines = run_marian(peer_python, "decode", case, *options)
    *_, vocabulary = files_of(case.folder)
    return Segmentation(vocabulary, "target").join(lines)


def imported(folder):
    """Returns (PortableModel, Transformer with its weights)."""
    from t2t_lite.formats import marian
    from t2t_lite.model.transformer import Transformer
    from t2t_lite.storage.model_directory import assign

    found = marian.read(folder)
    model = Transformer(
        found.hparams,
        vocabulary_size=found.vocabulary.size,
        num_target_ids=found.vocabulary.target.size,
    )
    model.build()
    assign(model.trainable_variables, found.weights, "the imported model")
    return found, model


def our_scores(case):
    """Returns (this package's log probability, tokens) of each target."""
    found, model = imported(case.folder)
    vocabulary = found.vocabulary
    source_ids = vocabulary.encode(case.sources)
    target_ids = vocabulary.target.encode(case.targets)
    scores = []
    for start in range(0, len(source_ids), _PAIRS_AT_ONCE):
        part = slice(start, start + _PAIRS_AT_ONCE)
        scores += _scores(model, source_ids[part], target_ids[part])
    return np.array(scores), np.array([len(ids) for ids in target_ids])


def _scores(model, source_ids, target_ids):
    from t2t_lite.model.transformer import shift_right

    source_BS, target_BT = _padded(source_ids), _padded(target_ids)
    logits_BTV = np.float64(model((source_BS, shift_right(target_BT))))
    logits_BTV -= logits_BTV.max(-1, keepdims=True)
    sums_BT = np.log(np.exp(logits_BTV).sum(-1))
    chosen_BT = np.take_along_axis(logits_BTV, target_BT[..., None], -1)[..., 0]
    return np.where(target_BT > 0, chosen_BT - sums_BT, 0.0).sum(-1).tolist()


def _padded(sequences):
    table = np.zeros((len(sequences), max(map(len, sequences))), np.int32)
    for row, ids in zip(table, sequences, strict=True):
        row[: len(ids)] = ids
    return table


def our_translations(case, beam_width):
    """Returns this package's best translations, without a length penalty."""
    from t2t_lite.formats.imported import write
    from t2t_lite.formats.marian import read
    from t2t_lite.translation.line_translator import Translator

    with tempfile.TemporaryDirectory() as temporary:
        model_dir = pathlib.Path(temporary) / "model"
        write(read(case.folder), model_dir)
        translator = Translator(
            str(model_dir), beam_width=beam_width, length_penalty=0.0
        )
        found = translator.translate(case.sources)
        return [best.text for best, *_ in found]


def compare_translations(case, peer_python, beam_width):
    """Returns a line: how many are the same, and how many score higher."""
    ours = our_translations(case, beam_width)
    theirs = marian_translations(peer_python, case, beam_width)
    scores, other_scores = (
        our_scores(case._replace(targets=texts))[0] for texts in (ours, theirs)
    )
    same = sum(map(str.__eq__, ours, theirs))
    higher = int((scores > other_scores + _TOLERANCE).sum())
    lower = int((scores < other_scores - _TOLERANCE).sum())
    return (
        f"{same} of {len(ours)} translations are the same, and {higher} score "
        f"higher than Marian's, {lower} lower"
    )


def compare(name, case, peer_python, beam_width):
    """Prints how far a model is from Marian; returns whether it agrees."""
    theirs = marian_scores(peer_python, case)
    ours, num_tokens = our_scores(case)
    difference = np.abs(ours - theirs) / num_tokens
    line = (
        f"{name:16s} {len(ours):6d} pairs, at most {difference.max():.1e}, "
        f"{difference.mean():.1e} on average"
    )
    if beam_width:
        line += f"; {compare_translations(case, peer_python, beam_width)}"
    print(line, flush=True)
    return difference.max() <= _TOLERANCE


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument(
        "--peer_python", type=measuring.existing_path, required=True
    )
    parser.add_argument("--model", type=measuring.existing_path)
    parser.add_argument("--source", type=measuring.existing_path)
    parser.add_argument("--target", type=measuring.existing_path)
    parser.add_argument("--beam_width", type=measuring.positive_int)
    parser.add_argument("--golden", action="store_true")
    args = parser.parse_args()
    given = [args.model, args.source, args.target]
    if any(given) and not all(given):
        parser.error("give --model, --source and --target together")
    if args.model:
        lines = read_lines(args.source), read_lines(args.target)
        cases = {args.model.name: Case(args.model, *lines)}
        sys.exit(not run(cases, args))
    with tempfile.TemporaryDirectory() as temporary:
        sys.exit(not run(tiny_cases(pathlib.Path(temporary)), args))


def run(cases, args):
    """Prints the comparison, or golden scores; returns whether all agree."""
    if args.golden:
        scores = {
            name: marian_scores(args.peer_python, case).tolist()
            for name, case in cases.items()
        }
        print(json.dumps(scores, indent=4))
        return True
    agree = [
        compare(name, case, args.peer_python, beam_width=args.beam_width)
        for name, case in cases.items()
    ]
    return all(agree)


if __name__ == "__main__":
    main()
