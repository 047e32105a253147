r"""Back-translation, sampling, a shallow decoder: what a small corpus gains.

    python tests/benchmarks/small_corpus.py DIR --precision=auto \
        --train_source=train.en --train_target=train.de \
        --dev_source=val.en --dev_target=val.de [--updates=1850] [--rounds=3]

Trains seven models of transformer_multi30k, each with the same number of
updates, half of them with a falling rate:

- half: on the first half of the pairs;
- reverse: the same, from target to source;
- back-translation: on the first half, and on the target side of the second,
  whose source, after <bt>, is the reverse model's translation;
- whole: on all pairs;
- sampling: the same with subword_sampling=0.1;
- 6 + 6 and 6 + 2: the same as whole, with so many layers of encoder and
  decoder.

Prints dev BLEU (sacrebleu, cased; the length ratio is that of the tokens),
sacrebleu's paired bootstrap for pairs of models, and how much faster 6 + 2
searches than 6 + 6: the median ratio of rounds in which they take turns. Models
stay in DIR: the same command goes on from where it was interrupted.
"""

import argparse
import json
import pathlib
import statistics
import subprocess
import sys
from collections.abc import Mapping, Sequence

_HERE = pathlib.Path(__file__).absolute().parent
_BIN = _HERE.parents[1] / "bin"
sys.path[:0] = [str(_HERE), str(_BIN)]

import checkout  # noqa: F401, this checkout's packages
import machine
import measuring
import translating

from t2t_lite_data import text_files

_TAG = "<bt>"
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
_FLAGS = ("train_source", "train_target", "dev_source", "dev_target")


def write_halves(
    folder: pathlib.Path, pairs: Sequence[tuple[str, str]]
) -> None:
    """Writes first.source, first.target, second.target of the pairs' halves."""
    middle = len(pairs) // 2
    sources, targets = zip(*pairs, strict=True)
    _write(folder / "first.source", sources[:middle])
    _write(folder / "first.target", targets[:middle])
    _write(folder / "second.target", targets[middle:])


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
    source, target = folder / "first.source", folder / "first.target"
    if name == "reverse":
        return {
            "train_source": str(target),
            "train_target": str(source),
            "dev_source": given["dev_target"],
            "dev_target": given["dev_source"],
        }
    text = dict(given)
    if name == "half":
        text |= {"train_source": str(source), "train_target": str(target)}
    if name == "back-translation":
        back, monolingual = folder / "back.source", folder / "second.target"
        text |= {
            "train_source": f"{source},{back}",
            "train_target": f"{target},{monolingual}",
        }
    return text


def train(
    name: str,
    folder: pathlib.Path,
    text: Mapping[str, str],
    *,
    updates: int,
    precision: str,
) -> None:
    """Trains a model to its end; its log is NAME.log."""
    overrides = {"cooldown_steps": updates // 2} | MODELS[name]
    with open(folder / f"{name}.log", "a", encoding="utf-8") as log:
        subprocess.run(
            [
                *(sys.executable, _BIN / "train"),
                "--hparams=transformer_multi30k",
                f"--model_dir={folder / name}",
                f"--steps={updates}",
                f"--precision={precision}",
                *(f"--override={k}={v}" for k, v in overrides.items()),
                *(f"--{flag}={path}" for flag, path in text.items()),
            ],
            check=True,
            stderr=log,
            stdout=log,
        )


def translate(model_dir: pathlib.Path, source: str) -> list[str]:
    """Returns the translations of a file's lines."""
    command = [
        *(sys.executable, _BIN / "translate"),
        f"--model_dir={model_dir}",
        "--average_last=10",
        f"--input={source}",
    ]
    return measuring.run(command).stdout.splitlines()


def print_scores(name: str, folder: pathlib.Path, reference: str) -> None:
    """Prints the dev scores of a model, beside those of its baseline."""
    import sacrebleu

    lines, expected = (
        list(text_files.lines(path))
        for path in (str(folder / f"{name}.dev"), reference)
    )
    bleu = sacrebleu.corpus_bleu(lines, [expected])
    print(
        f"{name:18} {bleu.score:6.2f} BLEU  "
        f"length ratio {bleu.sys_len / bleu.ref_len:.3f}",
        flush=True,
    )
    if name in BASELINES:
        baseline = folder / f"{BASELINES[name]}.dev"
        p_value = bootstrap_p_value(reference, baseline, folder / f"{name}.dev")
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
    """Prints how much faster 6 + 2 translates a file's lines than 6 + 6."""
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
    ratios = [
        deep[1] / shallow[1]
        for deep, shallow in zip(*results.values(), strict=True)
    ]
    print(f"6 + 2 is {statistics.median(ratios):.2f} times as fast as 6 + 6")


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
    parser.add_argument("--precision", default="float32")
    args = parser.parse_args()
    folder = args.folder.absolute()
    given = {flag: str(getattr(args, flag).absolute()) for flag in _FLAGS}
    with measuring.usage_errors(parser):
        pairs = list(
            text_files.pairs(given["train_source"], given["train_target"])
        )
    folder.mkdir(parents=True, exist_ok=True)
    write_halves(folder, pairs)
    machine.print_machine(f"{len(pairs)} pairs, {args.updates} updates")
    for name in MODELS:
        text = text_of(name, folder, given)
        output = folder / f"{name}.dev"
        if not output.exists():
            train(
                name,
                folder,
                text,
                updates=args.updates,
                precision=args.precision,
            )
            if name == "reverse":
                back = translate(folder / name, str(folder / "second.target"))
                _write(folder / "back.source", tagged(back))
            _write(output, translate(folder / name, text["dev_source"]))
        print_scores(name, folder, text["dev_target"])
    print_speed(folder, given["dev_source"], args.rounds)


if __name__ == "__main__":
    main()
