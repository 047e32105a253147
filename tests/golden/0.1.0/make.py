"""Makes the files next to this one, with version 0.1.0 of t2t_lite.

    python make.py CHECKOUT_OF_0.1.0

The corpus is made up here. That version trains both model directories on it,
averages and exports the one for translation, and resumes its run (resumed.npz).
expected.json has that version's outputs and scores. The text is in /corpus
while this runs, because settings keep the paths of their text.
"""

import json
import os
import pathlib
import shutil
import subprocess
import sys
import tarfile

CORPUS = pathlib.Path("/corpus")
DIGITS = ["null", "eins", "zwei", "drei", "vier", "acht", "neun", "elf"]
TAGS = ["NN", "VB", "DT", "JJ"]
LINES = ["eins zwei drei", "", "elf", "vier acht neun null eins zwei", "zwei"]
TINY = {
    "num_layers": 1,
    "d_model": 24,
    "d_ff": 40,
    "num_heads": 3,
    "d_k": 8,
    "d_v": 8,
    "vocabulary_size": 330,
    "tokens_per_batch": 256,
    "max_length": 64,
    "num_buckets": 3,
    "warmup_steps": 60,
    "learning_rate_scale": 0.5,
    "dropout": 0.05,
    "average_last": 2,
}


def sentences(first, count):
    """Returns lists of two to six words, in an order that looks random."""
    numbers = [str(n * 7919 % 10**6) for n in range(first, first + count)]
    spelled = [[DIGITS[int(d) % 8] for d in number] for number in numbers]
    return [words if len(words) > 1 else [*words, "eins"] for words in spelled]


def tree(words):
    """Returns a line with a tree of words; a word's length decides its tag."""
    first, *others = (f"({TAGS[len(w) % 4]} {w})" for w in words)
    return f"(TOP (S (NP {first}) (VP {' '.join(others)})))"


def write(name, lines):
    (CORPUS / name).write_text("".join(f"{line}\n" for line in lines), "utf-8")


def make_corpus():
    CORPUS.mkdir()
    for split, first, count in (("train", 100, 60), ("dev", 500, 12)):
        sources = sentences(first, count)
        write(f"{split}.source", map(" ".join, sources))
        write(f"{split}.target", (" ".join(reversed(s)) for s in sources))
        write(f"{split}.trees", map(tree, sources))


def run(program, *flags):
    environment = os.environ | {"CUDA_VISIBLE_DEVICES": "-1"}
    command = [sys.executable, CHECKOUT / "bin" / program, *flags]
    subprocess.run(command, check=True, env=environment)


def train(folder, steps, flags):
    run(
        "train",
        *flags,
        *(f"--override={name}={value}" for name, value in TINY.items()),
        f"--model_dir={folder}",
        f"--steps={steps}",
        "--save_every_steps=200",
        f"--evaluate_every_steps={steps}",
        "--micro_batch_tokens=256",
    )
    shutil.rmtree(f"{folder}/summaries", ignore_errors=True)


def resumed(folder, steps, flags):
    """Returns the tensors of a copy of the run, resumed until step `steps`."""
    from t2t_lite import checkpoints

    shutil.copytree(folder, "copy")
    train("copy", steps, flags)
    tensors = checkpoints.read(f"copy/checkpoints/step-{steps}")
    shutil.rmtree("copy")
    del tensors["device_seconds"]
    return tensors


def translations(model):
    found = model.translate(LINES)
    return [[[t.text, t.score] for t in nbest] for nbest in found]


def expected():
    import t2t_lite

    ways = {
        "last": {},
        "best": {"checkpoint": "best"},
        "averaged": {"checkpoint": "averaged"},
        "average_last": {"average_last": 2},
        "nbest": {"nbest": 3},
    }
    found = {
        way: t2t_lite.Translator("translation", xla=False, **options)
        for way, options in ways.items()
    }
    found["parsing"] = t2t_lite.Parser("parsing")
    found["export"] = t2t_lite.Translator.from_saved_model("export/1")
    values = {way: translations(model) for way, model in found.items()}
    for folder in ("translation", "parsing"):
        run("evaluate", f"--model_dir={folder}", "--json=scores.json")
        scores = pathlib.Path("scores.json")
        values[f"evaluate {folder}"] = json.loads(scores.read_text())
        scores.unlink()
    return values


def main():
    import numpy as np

    make_corpus()
    text = [
        f"--{split}_{side}={CORPUS}/{split}.{side}"
        for split in ("train", "dev")
        for side in ("source", "target")
    ]
    trees = [
        f"--train_trees={CORPUS}/train.trees",
        f"--dev_trees={CORPUS}/dev.trees",
        "--hparams=transformer_parsing_small",
        "--override=beam_width=4",
        "--override=max_extra_length=60",
    ]
    train("translation", 600, text)
    train("parsing", 400, trees)
    run("average_checkpoints", "--model_dir=translation")
    run("export", "--model_dir=translation", "--export_dir=export")
    np.savez_compressed("resumed.npz", **resumed("translation", 604, text))
    report = {"lines": LINES, "expected": expected()}
    pathlib.Path("expected.json").write_text(
        json.dumps(report, indent=1) + "\n", "utf-8"
    )
    with tarfile.open("export.tar.gz", "w:gz") as archive:
        archive.add("export")
    shutil.rmtree("export")
    shutil.copytree(CORPUS, "corpus")
    shutil.rmtree(CORPUS)


if __name__ == "__main__":
    CHECKOUT = pathlib.Path(sys.argv[1]).absolute()
    sys.path.insert(0, str(CHECKOUT))
    # From here on, paths are relative, so that the files suit any machine.
    os.chdir(pathlib.Path(__file__).absolute().parent)
    main()
