"""What a run needs before its first update, and whether it may go on."""

import dataclasses
import functools
import pathlib
import shutil
from collections.abc import Callable, Iterable
from typing import NamedTuple

from absl import logging

from t2t_lite import tasks
from t2t_lite.errors import InputError
from t2t_lite.hparams import MAY_CHANGE
from t2t_lite.storage.model_directory import ModelDirectory, Settings
from t2t_lite.text import token_cache, token_files
from t2t_lite.text.vocabulary import Vocabulary
from t2t_lite.training import micro_batches as memory


@dataclasses.dataclass(frozen=True)
class TrainingText:
    """The sentence pairs of a run.

    Args:
        flags: the flags that name them, kept with the settings.
        readers: for "train", and for "dev" and "test" if there are any, a
            function that returns the (source, target) pairs anew.
    """

    flags: dict[str, str]
    readers: dict[str, Callable[[], Iterable[tuple[str, str]]]]

    def checked(self, check):
        """Returns the text each pair of which is check(source, target)."""
        return TrainingText(
            self.flags,
            {
                split: functools.partial(_checked, reader, check)
                for split, reader in self.readers.items()
            },
        )

    def held_out(self):
        """Returns the pairs of dev and test, those of them that there are."""
        return {
            split: list(self.readers[split]())
            for split in ("dev", "test")
            if split in self.readers
        }


def _checked(reader, check):
    return (check(*pair) for pair in reader())


class Prepared(NamedTuple):
    """What a run is made of."""

    vocabulary: Vocabulary
    pairs: token_files.TokenPairs
    settings: Settings


def prepare(directory, hparams, text, options):
    """Fills a model directory, or checks that a run may go on in it.

    Args:
        directory: ModelDirectory.
        hparams: HParams.
        text: TrainingText.
        options: RunOptions.

    Raises:
        InputError: what the run was begun with differs, named; or the corpus or
            the vocabulary cannot be used.
    """
    cache_dir = _cache_dir(options)
    has_begun = directory.settings_path.exists()
    old = directory.settings() if has_begun else None
    if old is not None:
        _refuse_other_hparams(directory, old.hparams, hparams)
    directory.path.mkdir(parents=True, exist_ok=True)
    vocabulary = _vocabulary(directory, hparams, text, options)
    if old is not None and vocabulary.sha256 != old.vocabulary_sha256:
        raise _refusal(directory, "another vocabulary", options.vocabulary)
    pairs, report = _tokens(
        directory, hparams, text, vocabulary, old, cache_dir
    )
    logging.info("Training corpus: %s.", report)
    micro_batch_tokens = (
        options.micro_batch_tokens
        or (old and old.micro_batch_tokens)
        or memory.fitting_micro_batch_tokens(
            hparams, vocabulary.size, options.precision
        )
    )
    settings = Settings(
        hparams,
        text.flags,
        report.data_sha256,
        vocabulary.sha256,
        vocabulary.size,
        micro_batch_tokens,
    )
    # Last, so that a directory with settings has all the rest.
    vocabulary.save(directory.vocabulary_path)
    if old is None:
        tasks.task_of(hparams).save_extras(
            directory, hparams, vocabulary, text.readers["train"]
        )
    directory.save_settings(settings)
    return Prepared(vocabulary, pairs, settings)


def _cache_dir(options):
    """Returns the path of --cache_dir, None if there is none."""
    if options.cache_dir is None:
        return None
    path = pathlib.Path(options.cache_dir).expanduser()
    if path.exists() and not path.is_dir():
        raise InputError(f"--cache_dir must be a folder; {path} is a file")
    return path


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


def _vocabulary(directory, hparams, text, options):
    """Returns the run's Vocabulary: a given one, its own, or a learned one.

    A warm start needs the vocabulary of the model that it starts from: its
    embedding has a row for each id of it.
    """
    task, read_pairs = tasks.task_of(hparams), text.readers["train"]
    warm = _vocabulary_beside(options.warm_start_from)
    if options.vocabulary:
        vocabulary = Vocabulary.load(options.vocabulary)
    elif directory.vocabulary_path.exists():
        vocabulary = directory.vocabulary()
    elif warm is not None:
        vocabulary = warm
    else:
        logging.info("Learning the vocabulary.")
        vocabulary = task.learn_vocabulary(
            read_pairs, hparams.vocabulary_type, hparams.vocabulary_size
        )
    is_given = bool(options.vocabulary) or warm is not None
    is_new_to_text = is_given and not directory.settings_path.exists()
    task.check_vocabulary(vocabulary, read_pairs if is_new_to_text else None)
    if warm is not None and warm.sha256 != vocabulary.sha256:
        raise InputError(
            f"{options.warm_start_from} has another vocabulary than this run: "
            "start without --vocabulary, in a new --model_dir"
        )
    return vocabulary


def _vocabulary_beside(warm_start_from):
    """Returns the Vocabulary of the model to start from, None if not known."""
    if warm_start_from is None:
        return None
    path = pathlib.Path(warm_start_from)
    # A model directory, or a checkpoint in one of its folders.
    directory = path if path.is_dir() else path.absolute().parents[1]
    vocabulary = ModelDirectory(directory).vocabulary_path
    return Vocabulary.load(vocabulary) if vocabulary.exists() else None


def _tokens(directory, hparams, text, vocabulary, old, cache_dir):
    """Returns (TokenPairs, CorpusReport) of the training corpus."""
    read_pairs = text.readers["train"]
    data_sha256 = None  # Of a new run, known once the text is tokenized.
    if old is not None or cache_dir is not None or directory.tokens.exists():
        data_sha256 = token_files.hash_pairs(read_pairs())
    if old is not None and data_sha256 != old.data_sha256:
        raise _refusal(directory, "other training text", "this corpus")
    encode_targets = functools.partial(
        tasks.task_of(hparams).encode_targets, vocabulary
    )
    tokenizer = token_files.PairTokenizer(
        vocabulary, encode_targets, hparams.max_length
    )
    if cache_dir is not None:
        return token_cache.shared_tokens(
            cache_dir, read_pairs, data_sha256, tokenizer
        )
    if directory.tokens.exists():
        pairs, report = token_files.load_pairs(directory.tokens)
        if report.key == tokenizer.key(data_sha256):
            return pairs, report
        shutil.rmtree(directory.tokens)
    logging.info("Tokenizing the training corpus.")
    token_files.tokenize_pairs(read_pairs(), tokenizer, directory.tokens)
    return token_files.load_pairs(directory.tokens)
