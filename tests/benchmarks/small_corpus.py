r"""Back-translation, sampling, a shallow decoder: what a small corpus gains.

    python tests/benchmarks/small_corpus.py DIR --precision=float32 \
        --train_source=train.en --train_target=train.de \
        --dev_source=val.en --dev_target=val.de \
        [--updates=1850] [--rounds=3] [--models=6+6,6+2]

Trains up to seven models of d_model 256, pre-norm and V = 5,000, with 3 + 3
layers if they are not named otherwise, each with the same number of updates of
2,048 tokens, during which the learning rate rises for one half and falls for
the other:

- half: on every other pair;
- reverse: the same, from target to source;
- back-translation: on the same pairs, and on the target side of the others,
  whose source, after <bt>, is the reverse model's translation;
- whole: on all pairs;
- sampling: the same with subword_sampling=0.1;
- 6+6 and 6+2: the same as whole, with so many layers of encoder and decoder.

Prints dev BLEU (sacrebleu, cased; the length ratio is that of its tokens) of
the averaged last ten checkpoints, the p of sacrebleu's paired bootstrap for
pairs of models, and how much faster 6+2 searches than 6+6: the median ratio of
rounds in which they take turns with dev, a beam of 4 and no length penalty.

Models and translations stay in DIR: the same command goes on from where it was
interrupted. --models chooses some of the models.
"""

import argparse
import hashlib
import json
import pathlib
import statistics
import subprocess
import sys
from collections.abc import Mapping, Sequence
from typing import Any

_HERE = pathlib.Path(__file__).absolute().parent
_BIN = _HERE.parents[1] / "bin"
sys.path[:0] = [str(_HERE), str(_BIN)]

import checkout  # noqa: F401, this checkout's packages
import machine
import measuring
import translating

from t2t_lite_data import text_files

_TAG = "<bt>"
_CHECKPOINTS = 10  # That are averaged.
# Not left to the preset, so that its changes do not change these figures.
_SETTINGS = {
    "num_layers": 3,
    "d_model": 256,
    "d_ff": 512,
    "num_heads": 4,
    "d_k": 64,
    "d_v": 64,
    "norm": "pre",
    "dropout": 0.3,
    "label_smoothing": 0.1,
    "vocabulary_type": "bpe",
    "vocabulary_size": 5000,
    "tokens_per_batch": 2048,
    "max_length": 128,
    "learning_rate_scale": 1.4,
    "beam_width": 5,
    "length_penalty": 1.0,
    "seed": 1,
}
# Overrides of each model, in the order in which they are trained.
MODELS = {
    "reverse": {},
    "half": {},
    "back-translation": {"reserved_symbols": _TAG},
    "whole": {},
    "sampling": {"subword_sampling": 0.1},
    "6+6": {"num_layers": 6},
    "6+2": {"num_layers": 6, "num_decoder_layers": 2},
}
# Each with what it is compared to, which must be there before it.
BASELINES = {
    "back-translation": "half",
    "whole": "half",
    "sampling": "whole",
    "6+2": "6+6",
}
# What else must be there before it.
_SOURCES = {"back-translation": "reverse"}
_FLAGS = ("train_source", "train_target", "dev_source", "dev_target")


def overrides(name: str, updates: int) -> dict[str, Any]:
    """Returns the settings of a model that are not those of the preset.

    Args:
        name: one of MODELS.
        updates: how many it is trained for, at least _CHECKPOINTS.
    """
    schedule = {
        "warmup_steps": updates // 2,
        "cooldown_steps": updates // 2,
        "save_every_steps": updates // (2 * _CHECKPOINTS) or 1,
    }
    return _SETTINGS | schedule | MODELS[name]


def chosen_models(text: str) -> list[str]:
    """Returns the models that are named, in the order of MODELS.

    >>> chosen_models("6+2,6+6")
    ['6+6', '6+2']

    Args:
        text: names of MODELS, separated by commas.

    Raises:
        ArgumentTypeError: one is unknown, or needs one that is not named.
    """
    names = set(text.split(","))
    if unknown := names - MODELS.keys():
        raise argparse.ArgumentTypeError(
            f"unknown: {', '.join(sorted(unknown))}; there are "
            f"{', '.join(MODELS)}"
        )
    for needs in (BASELINES, _SOURCES):
        for name in names & needs.keys():
            if needs[name] not in names:
                raise argparse.ArgumentTypeError(
                    f"{name} needs {needs[name]}: name it, too"
                )
    return [name for name in MODELS if name in names]


def write_halves(
    folder: pathlib.Path, pairs: Sequence[tuple[str, str]]
) -> None:
    """Writes half.source and half.target, and other.target of other pairs."""
    sources, targets = zip(*pairs, strict=True)
    _write(folder / "half.source", sources[::2])
    _write(folder / "half.target", targets[::2])
    _write(folder / "other.target", targets[1::2])


def tagged(lines: Sequence[str]) -> list[str]:
    """Returns back-translated lines that begin with the tag.

    >>> tagged(["A dog."])
    ['<bt> A dog.']
    """
    return [f"{_TAG} {line}" for line in lines]


def text_of(
    name: str, folder: pathlib.Path, given: Mapping[str, str]
) -> dict[str, str]:
    """Returns the text of a model, by the flag of bin/train.

    Args:
        name: one of MODELS.
        folder: where the halves and the back-translation are.
        given: the whole text, by the same flags.
    """
    source, target = str(folder / "half.source"), str(folder / "half.target")
    if name == "reverse":
        return {
            "train_source": target,
            "train_target": source,
            "dev_source": given["dev_target"],
            "dev_target": given["dev_source"],
        }
    text = dict(given)
    if name in ("half", "back-translation"):
        text |= {"train_source": source, "train_target": target}
    if name == "back-translation":
        text["train_source"] += f",{folder / 'back.source'}"
        text["train_target"] += f",{folder / 'other.target'}"
    return text


def train(
    name: str,
    folder: pathlib.Path,
    text: Mapping[str, str],
    *,
    updates: int,
    precision: str,
) -> None:
    """Trains a model to its end; what bin/train says is added to NAME.log."""
    settings = overrides(name, updates).items()
    log_path = folder / f"{name}.log"
    with open(log_path, "a", encoding="utf-8") as log:
        status = subprocess.call(
            [
                *(sys.executable, _BIN / "train"),
                "--hparams=transformer_multi30k",
                f"--model_dir={folder / name}",
                f"--steps={updates}",
                f"--precision={precision}",
                *(f"--override={field}={value}" for field, value in settings),
                *(f"--{flag}={path}" for flag, path in text.items()),
            ],
            stderr=log,
            stdout=log,
        )
    if status:
        sys.exit(f"the training of {name} failed: see {log_path}")


def translate(
    model_dir: pathlib.Path, source: str, output: pathlib.Path
) -> None:
    """Writes the translations of a file's lines, unless they are there."""
    if not output.exists():
        measuring.run(
            [
                *(sys.executable, _BIN / "translate"),
                f"--model_dir={model_dir}",
                f"--average_last={_CHECKPOINTS}",
                f"--input={source}",
                f"--output={output}",
            ]
        )


def print_scores(name: str, folder: pathlib.Path, reference: str) -> None:
    """Prints the dev scores of a model, beside those of its baseline."""
    import sacrebleu

    output = folder / f"{name}.dev"
    pairs = text_files.pairs(str(output), reference)
    lines, expected = zip(*pairs, strict=True)
    bleu = sacrebleu.corpus_bleu(lines, [expected])
    print(
        f"{name:18} {bleu.score:6.2f} BLEU  "
        f"length ratio {bleu.sys_len / bleu.ref_len:.3f}",
        flush=True,
    )
    if name in BASELINES:
        baseline = folder / f"{BASELINES[name]}.dev"
        p_value = bootstrap_p_value(reference, baseline, output)
        print(f"{'':18} paired with {BASELINES[name]}: p = {p_value:.4f}")


def bootstrap_p_value(
    reference: str, baseline: pathlib.Path, output: pathlib.Path
) -> float:
    """Returns how likely so large a difference in BLEU is to be chance."""
    command = [
        *(sys.executable, "-m", "sacrebleu", reference),
        *("-i", baseline, output),
        *("--metrics", "bleu", "--paired-bs", "--format", "json"),
    ]
    _, compared = json.loads(measuring.run(command).stdout)
    return compared["BLEU"]["p_value"]


def print_speed(folder: pathlib.Path, lines: str, rounds: int) -> None:
    """Prints how much faster 6+2 translates a file's lines than 6+6."""
    commands = {}
    for name in ("6+6", "6+2"):
        task = folder / f"{name}.task"
        task.mkdir(exist_ok=True)
        translating.prepare(task, None, folder / name, lines_path=lines)
        commands[name] = [
            *(sys.executable, _HERE / "translating.py", "--measure"),
            *(task, "float32", 0, task / "output.json"),
        ]
    results = measuring.measure_rounds(commands, rounds)
    ratio = statistics.median(
        deep[1] / shallow[1]
        for deep, shallow in zip(*results.values(), strict=True)
    )
    tokens = [
        sum(map(len, json.loads((folder / path).read_text())))
        for path in ("6+6.task/output.json", "6+2.task/output.json")
    ]
    print(f"6+2 is {ratio:.2f} times as fast as 6+6 (tokens: {tokens})")


def is_of_other_arguments(
    folder: pathlib.Path, arguments: Mapping[str, Any]
) -> bool:
    """Returns whether a folder's models were begun with other arguments.

    In an empty folder, these become its arguments.
    """
    path = folder / "arguments.json"
    if path.exists():
        return json.loads(path.read_text("utf-8")) != arguments
    folder.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(arguments), "utf-8")
    return False


def _write(path: pathlib.Path, lines: Sequence[str]) -> None:
    path.write_text("".join(f"{line}\n" for line in lines), "utf-8")


def main() -> None:
    """Trains what is not there yet, and prints all scores."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("folder", type=pathlib.Path, metavar="DIR")
    for flag in _FLAGS:
        parser.add_argument(
            f"--{flag}", type=measuring.existing_path, required=True
        )
    parser.add_argument("--updates", type=measuring.positive_int, default=1850)
    parser.add_argument("--rounds", type=measuring.positive_int, default=3)
    parser.add_argument("--models", type=chosen_models, default=[*MODELS])
    parser.add_argument(
        "--precision", choices=("float32", "bfloat16"), default="float32"
    )
    args = parser.parse_args()
    if args.updates < 2 * _CHECKPOINTS:
        parser.error(f"--updates must be at least {2 * _CHECKPOINTS}")
    folder = args.folder.absolute()
    given = {flag: str(getattr(args, flag).absolute()) for flag in _FLAGS}
    with measuring.usage_errors(parser):
        pairs = list(
            text_files.pairs(given["train_source"], given["train_target"])
        )
        dev = list(text_files.pairs(given["dev_source"], given["dev_target"]))
    arguments = {
        "updates": args.updates,
        "precision": args.precision,
        "text": hashlib.sha256(repr((pairs, dev)).encode()).hexdigest(),
    }
    if is_of_other_arguments(folder, arguments):
        parser.error(f"{folder} has models of other arguments: give another")
    write_halves(folder, pairs)
    machine.print_machine(f"{len(pairs)} pairs, {args.updates} updates")
    for name in args.models:
        text, output = text_of(name, folder, given), folder / f"{name}.dev"
        if not output.exists():
            train(
                name,
                folder,
                text,
                updates=args.updates,
                precision=args.precision,
            )
        translate(folder / name, text["dev_source"], output)
        if name == "reverse":
            back = folder / "back"
            translate(folder / name, str(folder / "other.target"), back)
            lines = list(text_files.lines(str(back)))
            _write(folder / "back.source", tagged(lines))
        print_scores(name, folder, text["dev_target"])
    if "6+2" in args.models:
        print_speed(folder, given["dev_source"], args.rounds)


if __name__ == "__main__":
    main()
