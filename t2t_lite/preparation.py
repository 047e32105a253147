"""What a run needs before its first update, and whether it may go on."""

import dataclasses
import pathlib
import shutil
from collections.abc import Callable, Iterable
from typing import NamedTuple

from absl import logging

from t2t_lite import batching, memory, tokenization
from t2t_lite.errors import InputError
from t2t_lite.hparams import MAY_CHANGE
from t2t_lite.model_directory import Settings


@dataclasses.dataclass(frozen=True)
class Corpus:
    """The sentence pairs of a run.

    Args:
        name: the flags that name it, kept with the settings.
        splits: "train", and "dev" and "test" if there are any, each a function
            that returns its (source, target) pairs anew.
    """

    name: dict[str, str]
    splits: dict[str, Callable[[], Iterable[tuple[str, str]]]]


class Prepared(NamedTuple):
    """What a run is made of."""

    vocabulary: tokenization.Vocabulary
    pairs: batching.TokenPairs
    micro_batch_tokens: int


def prepare(directory, hparams, corpus, options):
    """Fills a model directory, or checks that a run may go on in it.

    Args:
        directory: ModelDirectory.
        hparams: HParams.
        corpus: Corpus.
        options: RunOptions.

    Raises:
        InputError: what the run was begun with differs, named; or the corpus or
            the vocabulary cannot be used.
    """
    begun = directory.settings_path.exists()
    old = directory.settings() if begun else None
    if old is not None:
        _refuse_other_hparams(directory, old.hparams, hparams)
    directory.path.mkdir(parents=True, exist_ok=True)
    vocabulary = _vocabulary(directory, hparams, corpus, options, old)
    pairs, report = _tokens(directory, hparams, corpus, vocabulary, begun)
    if old is not None and report.data_sha256 != old.data_sha256:
        raise _refusal(directory, "the training text", "other text")
    logging.info("Training corpus: %s.", report)
    micro_batch_tokens = (
        options.micro_batch_tokens
        or (old and old.micro_batch_tokens)
        or memory.fitting_micro_batch_tokens(
            hparams, vocabulary.size, options.precision
        )
    )
    directory.save_settings(
        Settings(
            hparams,
            corpus.name,
            report.data_sha256,
            vocabulary.sha256,
            vocabulary.size,
            micro_batch_tokens,
        )
    )
    return Prepared(vocabulary, pairs, micro_batch_tokens)


def _refuse_other_hparams(directory, old, new):
    for field in dataclasses.fields(old):
        before, now = getattr(old, field.name), getattr(new, field.name)
        if before != now and field.name not in MAY_CHANGE:
            raise _refusal(
                directory, f"{field.name}={before}", f"{field.name}={now}"
            )


def _refusal(directory, before, now):
    return InputError(
        f"{directory.path} was trained with {before}; received {now}: give the "
        "same again, or another --model_dir"
    )


def _vocabulary(directory, hparams, corpus, options, old):
    """Returns the run's Vocabulary: its own, a given one, or a learned one."""
    own = directory.vocabulary_path
    given = options.vocabulary
    if given is None and options.warm_start_from and not own.exists():
        beside = pathlib.Path(options.warm_start_from, own.name)
        given = beside if beside.exists() else None
    if given is not None:
        vocabulary = tokenization.Vocabulary.load(given)
        if own.exists() and directory.vocabulary().sha256 != vocabulary.sha256:
            raise _refusal(directory, f"the vocabulary {own}", str(given))
    elif own.exists():
        vocabulary = directory.vocabulary()
    else:
        logging.info("Learning the vocabulary.")
        vocabulary = tokenization.learn(
            (line for pair in corpus.splits["train"]() for line in pair),
            hparams.vocabulary_type,
            hparams.vocabulary_size,
        )
    if old is not None and vocabulary.sha256 != old.vocabulary_sha256:
        raise _refusal(directory, "another vocabulary", str(own))
    if not own.exists():
        vocabulary.save(own)
    return vocabulary


def _tokens(directory, hparams, corpus, vocabulary, begun):
    """Returns (TokenPairs, CorpusReport) of the training corpus."""
    made_by = {
        "vocabulary_sha256": vocabulary.sha256,
        "max_length": hparams.max_length,
    }
    if directory.tokens.exists():
        pairs, report = batching.load_pairs(directory.tokens)
        data_sha256 = batching.hash_pairs(corpus.splits["train"]())
        if report.is_of(data_sha256, **made_by):
            return pairs, report
        if begun:
            raise _refusal(directory, "other training text", "this corpus")
        shutil.rmtree(directory.tokens)
    logging.info("Tokenizing the training corpus.")
    batching.tokenize_pairs(
        corpus.splits["train"](),
        vocabulary,
        hparams.max_length,
        directory.tokens,
    )
    return batching.load_pairs(directory.tokens)
