"""Times training over an epoch of real text; JoeyNMT's and OpenNMT-py's too.

    python tests/benchmarks/real_text.py --source=train.en --target=train.de

All train a small model (see small_model.py) with one BPE vocabulary of 8,000,
in token batches of one size (--tokens, 2,048). A measurement is the whole
command that a user would give, from its start: it reads the text, tokenizes it,
sorts it into batches and trains on it once. The speed is in tokens of the text
per second, of both sides and EOS included; padding does not count. The
vocabulary is learned beforehand, untimed.

--peer_python=PYTHON is that of an environment with joeynmt 2.3, OpenNMT-py 3.5
and sentencepiece 0.2.0 (0.2.3 lacks what JoeyNMT calls); --pairs=N takes only
the first N pairs; --rounds is 3 by default.
"""

import argparse
import itertools
import json
import pathlib
import re
import shutil
import statistics
import sys
import tempfile
from typing import NamedTuple

HERE = pathlib.Path(__file__).absolute().parent
ROOT = HERE.parents[1]
sys.path.insert(0, str(ROOT / "bin"))

import checkout  # noqa: F401, this checkout's packages
import machine
import measuring
import small_model

_NEVER = 1_000_000_000
_DEV_LINES = 8  # The peers require dev text.


class Epoch(NamedTuple):
    """An epoch. This package leaves incomplete batches to the next one."""

    steps: int  # updates in an epoch of this package
    steps_tokens: int  # of both sides in these updates, EOS included
    tokens: int  # of all pairs
    pairs: int


def prepare(folder, args):
    """Writes text, vocabulary and settings; returns the Epoch."""
    from t2t_lite_data import text_files

    pairs = [*text_files.pairs(str(args.source), str(args.target))]
    pairs = pairs[: args.pairs]
    write_text(folder, pairs)
    vocabulary = write_vocabulary(folder, pairs, args.vocabulary_size)
    epoch = plan_epoch(folder, pairs, vocabulary, tokens_per_batch=args.tokens)
    for name, settings in (
        ("joeynmt", joeynmt(folder, args)),
        ("onmt", opennmt_py(folder, args, epoch.steps)),
    ):
        (folder / f"{name}.json").write_text(json.dumps(settings))
    return epoch


def write_text(folder, pairs):
    """Writes the lines of each side, and the first few also as dev text."""
    sides = zip(*pairs, strict=True)
    for side, lines in zip(("source", "target"), sides, strict=True):
        for split, part in (("train", lines), ("dev", lines[:_DEV_LINES])):
            text = "".join(f"{line}\n" for line in part)
            (folder / f"{split}.{side}").write_text(text, "utf-8")


def write_vocabulary(folder, pairs, size):
    """Writes the vocabulary for all programs; returns it."""
    from t2t_lite.text import learning

    lines = itertools.chain.from_iterable(pairs)
    vocabulary = learning.learn(lines, "bpe", size)
    vocabulary.save(folder / "vocabulary.model")
    pieces = vocabulary.tokens(list(range(vocabulary.size)))
    # The peers add their own symbols, and allow no white space in pieces.
    added = ("<pad>", "<s>", "</s>", "<unk>")
    pieces = [p for p in pieces if p not in added and p.split() == [p]]
    (folder / "pieces.txt").write_text("\n".join(pieces) + "\n", "utf-8")
    counted = "".join(f"{piece}\t1\n" for piece in pieces)
    (folder / "pieces.counts").write_text(counted, "utf-8")
    return vocabulary


def plan_epoch(folder, pairs, vocabulary, tokens_per_batch):
    """Returns the Epoch of these pairs."""
    from t2t_lite.text import batching, token_cache, token_files

    hparams = small_model.hparams()
    tokens, _ = token_cache.shared_tokens(
        folder / "tokens",
        lambda: [pairs],
        token_files.hash_pairs(pairs),
        tokenizer=token_files.PairTokenizer(
            vocabulary, vocabulary.encode_flat, hparams.max_length
        ),
    )
    buckets = batching.make_buckets(
        tokens.source_lengths,
        tokens.target_lengths,
        tokens_per_batch,
        num_buckets=hparams.num_buckets,
    )
    plan = batching.BatchPlan(buckets, hparams.seed)
    lengths = tokens.source_lengths + tokens.target_lengths
    steps = plan.first_step(1)
    batches = (plan.batch(step) for step in range(steps))
    steps_tokens = sum(lengths[indices].sum() for _, indices in batches)
    return Epoch(
        steps=steps,
        steps_tokens=int(steps_tokens),
        tokens=int(lengths.sum()),
        pairs=len(lengths),
    )


def joeynmt(folder, args):
    """Returns the settings of JoeyNMT's training, under its names."""
    h = small_model.hparams()
    side = {
        "max_length": h.max_length,
        "level": "bpe",
        "voc_file": f"{folder}/pieces.txt",
        "tokenizer_type": "sentencepiece",
        "tokenizer_cfg": {"model_file": f"{folder}/vocabulary.model"},
    }
    stack = {
        "type": "transformer",
        "num_layers": h.num_layers,
        "num_heads": h.num_heads,
        "embeddings": {"embedding_dim": h.d_model, "scale": True},
        "hidden_size": h.d_model,
        "ff_size": h.d_ff,
        "dropout": h.dropout,
        "layer_norm": "post",
    }
    return {
        "name": "real_text",
        "joeynmt_version": "2.3.0",
        "model_dir": f"{folder}/joeynmt",
        "use_cuda": False,
        "data": {
            "train": f"{folder}/train",
            "dev": f"{folder}/dev",
            "dataset_type": "plain",
            "src": side | {"lang": "source"},
            "trg": side | {"lang": "target"},
        },
        "testing": {"beam_size": 1},
        "training": {
            "optimizer": "adam",
            "adam_betas": [h.adam_beta1, h.adam_beta2],
            "scheduling": "warmupinversesquareroot",
            "learning_rate": 0.001,
            "learning_rate_warmup": h.warmup_steps,
            "label_smoothing": h.label_smoothing,
            "batch_size": args.tokens,
            "batch_type": "token",
            "normalization": "tokens",
            "epochs": 1,
            "validation_freq": _NEVER,
            "logging_freq": _NEVER,
            "overwrite": True,
        },
        "model": {
            "initializer": "xavier_uniform",
            "tied_embeddings": True,
            "tied_softmax": True,
            "encoder": stack,
            "decoder": stack,
        },
    }


def opennmt_py(folder, args, steps):
    """Returns the settings of OpenNMT-py's training, under its names.

    OpenNMT-py repeats the text endlessly. It therefore does as many updates as
    an epoch of this package has, and reports how many pairs it has seen.
    """
    h = small_model.hparams()
    return {
        "data": {
            "train": {
                "path_src": f"{folder}/train.source",
                "path_tgt": f"{folder}/train.target",
                "transforms": ["sentencepiece"],
            }
        },
        "save_data": f"{folder}/onmt",
        "save_model": f"{folder}/onmt/model",
        "src_vocab": f"{folder}/pieces.counts",
        "tgt_vocab": f"{folder}/pieces.counts",
        "share_vocab": True,
        "src_subword_model": f"{folder}/vocabulary.model",
        "tgt_subword_model": f"{folder}/vocabulary.model",
        "train_steps": steps,
        "report_every": steps,
        "valid_steps": _NEVER,
        "save_checkpoint_steps": _NEVER,
        "num_workers": 0,
        "batch_type": "tokens",
        "batch_size": args.tokens,
        "normalization": "tokens",
        "encoder_type": "transformer",
        "decoder_type": "transformer",
        "position_encoding": True,
        "layers": h.num_layers,
        "heads": h.num_heads,
        "hidden_size": h.d_model,
        "word_vec_size": h.d_model,
        "transformer_ff": h.d_ff,
        "dropout": [h.dropout],
        "attention_dropout": [h.attention_dropout],
        "label_smoothing": h.label_smoothing,
        "share_embeddings": True,
        "share_decoder_embeddings": True,
        "param_init": 0,
        "param_init_glorot": True,
        "optim": "adam",
        "adam_beta2": h.adam_beta2,
        "decay_method": "noam",
        "learning_rate": 2.0,
        "warmup_steps": h.warmup_steps,
    }


def commands(folder, args, steps):
    """Returns the command of each measurement by its name."""
    found = {
        "t2t_lite": our_command(
            folder, args.tokens, steps, precision="float32"
        ),
        "t2t_lite, bfloat16": our_command(
            folder, args.tokens, steps, precision="bfloat16"
        ),
    }
    if args.peer_python:
        peer = [args.peer_python, HERE / "real_text_peer.py"]
        found |= {
            "JoeyNMT": [*peer, "joeynmt", folder / "joeynmt.json"],
            "OpenNMT-py": [*peer, "onmt", folder / "onmt.json"],
        }
    return found


def our_command(folder, tokens, steps, precision):
    return [
        sys.executable,
        ROOT / "bin" / "train",
        *small_model.training_flags(
            "steps", "vocabulary_size", "tokens_per_batch"
        ),
        f"--override=tokens_per_batch={tokens}",
        f"--precision={precision}",
        f"--steps={steps}",
        f"--vocabulary={folder}/vocabulary.model",
        f"--train_source={folder}/train.source",
        f"--train_target={folder}/train.target",
        f"--model_dir={folder}/run",
    ]


def tokens_per_second(folder, command, epoch):
    """Returns the speed of a command that starts from scratch.

    Raises:
        RuntimeError: the command fails; the message has its stderr.
    """
    for name in ("run", "joeynmt", "onmt"):
        if (folder / name).exists():  # Or a run would resume at its end.
            shutil.rmtree(folder / name)
    seconds, process = measuring.timed(lambda: measuring.run(command))
    tokens = epoch.tokens
    if command[0] == sys.executable:
        tokens = epoch.steps_tokens
    elif "onmt" in command:
        (pairs,) = re.findall(r"sents: +(\d+)", process.stdout + process.stderr)
        tokens *= int(pairs) / epoch.pairs
    return tokens / seconds


def measure_speeds(folder, args, epoch):
    """Returns the speed of each program in each round."""
    speeds = {}
    for n in range(args.rounds):
        for name, command in commands(folder, args, epoch.steps).items():
            speed = tokens_per_second(folder, command, epoch)
            speeds.setdefault(name, []).append(speed)
            print(f"round {n + 1}  {name:20} {speed:7.0f} tokens/s", flush=True)
    return speeds


def report(speeds):
    """Prints each program's median speed, and median ratios to the peers."""
    for name, values in speeds.items():
        line = f"{name:20} {statistics.median(values):7.0f} tokens/s"
        for peer in ("JoeyNMT", "OpenNMT-py"):
            if peer in speeds and "t2t_lite" in name:
                ratios = map(float.__truediv__, values, speeds[peer])
                line += f"  {statistics.median(ratios):.2f} times {peer}"
        print(line)


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--source", type=measuring.existing_path, required=True)
    parser.add_argument("--target", type=measuring.existing_path, required=True)
    parser.add_argument("--pairs", type=measuring.positive_int)
    parser.add_argument("--tokens", type=measuring.positive_int, default=2048)
    parser.add_argument(
        "--vocabulary_size", type=measuring.positive_int, default=8000
    )
    parser.add_argument("--peer_python", type=measuring.existing_path)
    parser.add_argument("--rounds", type=measuring.positive_int, default=3)
    args = parser.parse_args()
    if args.tokens < small_model.hparams().max_length:
        parser.error(
            f"--tokens must be at least {small_model.hparams().max_length}"
        )
    with tempfile.TemporaryDirectory() as folder:
        folder = pathlib.Path(folder)
        with measuring.usage_errors(parser):
            epoch = prepare(folder, args)
        if not epoch.steps:
            parser.error("there are too few pairs for an update: give more")
        machine.print_machine(str(epoch))
        report(measure_speeds(folder, args, epoch))


if __name__ == "__main__":
    main()
