"""The flags that name a corpus, shared by the binaries that read one."""

import functools
import os

from absl import flags

from data import corpora

_FILE_FLAGS = [
    f"{split}_{side}"
    for split in corpora.SPLITS
    for side in ("source", "target")
]


def define():
    """Defines --corpus, --train_source, --train_target and so on."""
    flags.DEFINE_string(
        "corpus",
        None,
        f"One of {', '.join(corpora.CORPORA)}; default: the text files given, "
        f"or {corpora.DEFAULT}.",
    )
    for name in _FILE_FLAGS:
        split, side = name.split("_")
        flags.DEFINE_string(
            name, None, f"Text files of the {side} side of {split}; globs, .gz."
        )


def given(default=corpora.DEFAULT):
    """Returns the flags that name the corpus, by name: what `corpus` takes.

    Args:
        default: the corpus that no flags mean; None to return None for them.
    """
    # Absolute, so that a model directory can be used from any folder.
    files = {
        name: ",".join(map(_absolute, flags.FLAGS[name].value.split(",")))
        for name in _FILE_FLAGS
        if flags.FLAGS[name].value
    }
    name = flags.FLAGS.corpus or (None if files else default)
    return (files | {"corpus": name} if name else files) or None


def corpus(names):
    """Returns the corpora.Corpus that the flags in `names` mean.

    Raises:
        InputError: they mean none, or two.
    """
    files = {name: names[name] for name in _FILE_FLAGS if name in names}
    if "corpus" in names:
        if files:
            raise corpora.InputError(
                "give --corpus or text files, not both; received --corpus="
                f"{names['corpus']} and --{next(iter(files))}"
            )
        return corpora.named(names["corpus"])
    return corpora.from_text_files(
        **{
            split: (names.get(f"{split}_source"), names.get(f"{split}_target"))
            for split in corpora.SPLITS
        }
    )


def readers(of):
    """Returns for each split of a Corpus the function that reads it anew.

    There is one for "train" in any case; it says what is missing.
    """
    splits = dict.fromkeys(("train", *of.splits))
    return {split: functools.partial(of.pairs, split) for split in splits}


def _absolute(path):
    return os.path.abspath(os.path.expanduser(path))
