"""What a run needs before its first update, and whether it may go on."""

import collections
import dataclasses
import functools
import os
import pathlib
import shutil
from collections.abc import Callable, Iterable, Iterator
from typing import Any, NamedTuple

import numpy as np
from absl import logging

from t2t_lite import tasks
from t2t_lite.errors import InputError
from t2t_lite.hparams import MAY_CHANGE, HParams
from t2t_lite.storage import settings_file
from t2t_lite.storage.model_directory import ModelDirectory, Settings
from t2t_lite.task import Task
from t2t_lite.text import sentences, token_cache, token_files
from t2t_lite.text.token_files import CorpusReport, PairTokenizer, TokenPairs
from t2t_lite.text.vocabulary import Vocabulary
from t2t_lite.training.micro_batches import fitting_micro_batch_tokens
from t2t_lite.training.options import RunOptions

Pairs = Iterable[tuple[str, str]]

_LINES_LOOKED_AT = 100_000  # Enough to tell a share of 1% from one of 0.9%.
_PAIRS_LOOKED_AT = 10_000
_NEARLY_ALL = 0.9  # The share at which a corpus is odd.


@dataclasses.dataclass(frozen=True)
class TrainingText:
    """The sentence pairs of a run.

    Args:
        flags: the flags that name them, kept with the settings.
        readers: for "train", and for "dev" and "test" if there are any, a
            function; each call reads the (source, target) pairs.
        source_language: ISO 639-1; None if not known.
    """

    flags: dict[str, str]
    readers: dict[str, Callable[[], Pairs]]
    source_language: str | None = None

    def checked(
        self, check: Callable[[str, str], tuple[str, str]]
    ) -> "TrainingText":
        """Returns the text whose pairs are check(source, target) of these."""
        readers = {
            split: functools.partial(_checked_pairs, reader, check)
            for split, reader in self.readers.items()
        }
        return dataclasses.replace(self, readers=readers)

    def held_out(self) -> dict[str, list[tuple[str, str]]]:
        """Returns the pairs of "dev" and "test", where there are any.

        Raises:
            InputError: there is such text, and it is empty.
        """
        pairs = {
            split: list(self.readers[split]())
            for split in ("dev", "test")
            if split in self.readers
        }
        for split, of_split in pairs.items():
            if not of_split:
                raise InputError(f"the {split} text has no pairs to score on")
        return pairs


def _checked_pairs(reader, check) -> Iterator[tuple[str, str]]:
    return (check(*pair) for pair in reader())


class Prepared(NamedTuple):
    """What a run is made of."""

    vocabulary: Vocabulary
    pairs: TokenPairs
    settings: Settings


def prepare(
    directory: ModelDirectory,
    hparams: HParams,
    text: TrainingText,
    options: RunOptions,
) -> Prepared:
    """Fills a model directory, or checks that a run may go on in it.

    Args:
        directory: ModelDirectory.
        hparams: HParams.
        text: TrainingText, checked.
        options: RunOptions.

    Raises:
        InputError: the run was begun with something else, which is named; or
            the corpus or the vocabulary cannot be used.
    """
    task = tasks.task_of(hparams)
    cache_dir = _cache_dir(options.cache_dir)
    begun = None  # The Settings that the run was begun with.
    # A run that has saved nothing may be begun anew with others.
    if directory.settings_path.exists() and is_trained(directory):
        begun = directory.settings()
        _require_same_hparams(directory, begun.hparams, hparams)
    settings_file.require_own(directory.path)
    directory.path.mkdir(parents=True, exist_ok=True)
    read_pairs = text.readers["train"]
    # Read once, and only where there is something to compare it with.
    data_sha256 = functools.cache(lambda: token_files.hash_pairs(read_pairs()))
    vocabulary, is_learned = _vocabulary(
        directory, task, hparams, read_pairs, data_sha256, begun, options
    )
    if begun is not None and vocabulary.sha256 != begun.vocabulary_sha256:
        received = options.vocabulary or "one learned from the training text"
        raise _other_run(directory, "another vocabulary", received)
    tokenizer = PairTokenizer(
        vocabulary,
        functools.partial(task.encode_targets, vocabulary),
        hparams.max_length,
    )
    pairs, report = _tokens(
        directory, read_pairs, data_sha256, tokenizer, begun, cache_dir
    )
    logging.info("Training corpus: %s.", report)
    if begun is None:
        _warn_of_odd_text(pairs)
        _warn_of_unknown(pairs, vocabulary)
    _warn_of_warmup(hparams)
    settings = Settings(
        hparams=hparams,
        corpus=text.flags,
        data_sha256=report.data_sha256,
        vocabulary_sha256=vocabulary.sha256,
        vocabulary_size=vocabulary.size,
        micro_batch_tokens=_micro_batch_tokens(
            hparams, vocabulary.size, options, begun
        ),
        **_sentence_figures(text.source_language, vocabulary, pairs, begun),
        vocabulary_is_learned=(
            is_learned if begun is None else begun.vocabulary_is_learned
        ),
    )
    if begun is None:
        task.save_extras(directory, hparams, vocabulary, read_pairs)
    vocabulary.save(directory.vocabulary_path)
    # Last, so that a directory with settings has all the rest.
    directory.save_settings(settings)
    return Prepared(vocabulary, pairs, settings)


def is_trained(directory: ModelDirectory) -> bool:
    """Returns whether there is a checkpoint, or a part of one."""
    folders = (directory.checkpoints, directory.best, directory.averaged)
    return any(any(folder.glob("step-*")) for folder in folders)


def _cache_dir(path: str | None) -> pathlib.Path | None:
    """Returns the folder of --cache_dir, None if there is none."""
    if path is None:
        return None
    folder = pathlib.Path(os.path.expanduser(path))
    if folder.exists() and not folder.is_dir():
        raise InputError(f"--cache_dir must be a folder; {folder} is a file")
    return folder


def _require_same_hparams(
    directory: ModelDirectory, begun: HParams, new: HParams
) -> None:
    for field in dataclasses.fields(begun):
        before, now = getattr(begun, field.name), getattr(new, field.name)
        if before != now and field.name not in MAY_CHANGE:
            raise _other_run(
                directory, f"{field.name}={before}", f"{field.name}={now}"
            )


def _other_run(
    directory: ModelDirectory, before: str, now: str | os.PathLike
) -> InputError:
    return InputError(
        f"{directory.path} was trained with {before}; received {now}: give the "
        "same again, or another --model_dir"
    )


def _micro_batch_tokens(
    hparams: HParams,
    vocabulary_size: int,
    options: RunOptions,
    begun: Settings | None,
) -> int:
    if options.micro_batch_tokens is not None:
        return options.micro_batch_tokens
    if begun is not None:
        return begun.micro_batch_tokens
    return fitting_micro_batch_tokens(
        hparams, vocabulary_size, options.precision
    )


def _sentence_figures(
    language: str | None,
    vocabulary: Vocabulary,
    pairs: TokenPairs,
    begun: Settings | None,
) -> dict[str, Any]:
    """Returns the fields of Settings by which lines are split later."""
    names = ("source_language", "multi_sentence_share", "long_line_tokens")
    if begun is not None:
        return {name: getattr(begun, name) for name in names}
    starts = pairs.source_offsets
    every = -(-len(starts) // _LINES_LOOKED_AT)
    sources = vocabulary.decode(
        pairs.source_ids[starts[n] : starts[n + 1]].tolist()
        for n in range(0, len(starts) - 1, every)
    )
    share = sentences.multi_sentence_share(sources, language)
    long_line = int(np.percentile(pairs.source_lengths, 99))
    return dict(zip(names, (language, share, long_line), strict=True))


def _vocabulary(
    directory: ModelDirectory,
    task: Task,
    hparams: HParams,
    read_pairs: Callable[[], Pairs],
    data_sha256: Callable[[], str],
    begun: Settings | None,
    options: RunOptions,
) -> tuple[Vocabulary, bool]:
    """Returns the run's Vocabulary, and whether it is learned from its text.

    It is a given one, the run's own, or a learned one.

    A warm start needs the vocabulary of the model that it starts from, whose
    embedding has a row for each of its ids.
    """
    warm = _vocabulary_beside(options.warm_start_from)
    is_learned = False
    if options.vocabulary:
        vocabulary = Vocabulary.load(options.vocabulary)
    elif begun is not None and directory.vocabulary_path.exists():
        vocabulary = directory.vocabulary()
    elif warm is not None:
        vocabulary = warm
    elif _has_vocabulary(directory, hparams, data_sha256):
        vocabulary, is_learned = directory.vocabulary(), True
    else:
        logging.info("Learning the vocabulary.")
        is_learned = True
        vocabulary = task.learn_vocabulary(
            read_pairs, hparams.vocabulary_type, hparams.vocabulary_size
        )
    is_given = bool(options.vocabulary) or warm is not None
    is_new_to_text = is_given and begun is None
    task.check_vocabulary(vocabulary, read_pairs if is_new_to_text else None)
    if warm is not None and warm.sha256 != vocabulary.sha256:
        raise InputError(
            f"{options.warm_start_from} has another vocabulary than this run: "
            "start without --vocabulary, in a new --model_dir"
        )
    return vocabulary, is_learned


def _has_vocabulary(
    directory: ModelDirectory,
    hparams: HParams,
    data_sha256: Callable[[], str],
) -> bool:
    """Returns whether a run that has saved nothing left the vocabulary."""
    if not directory.settings_path.exists():
        return False  # It may be of another text, or of another size.
    try:
        before = directory.settings()
        left = Vocabulary.load(directory.vocabulary_path)
    except InputError:
        return False
    return (
        before.vocabulary_is_learned
        and before.vocabulary_sha256 == left.sha256
        and all(
            getattr(before.hparams, name) == getattr(hparams, name)
            for name in ("task", "vocabulary_type", "vocabulary_size")
        )
        and before.data_sha256 == data_sha256()
    )


def _vocabulary_beside(warm_start_from: str | None) -> Vocabulary | None:
    """Returns the Vocabulary of the model to start from, None if not known."""
    if warm_start_from is None:
        return None
    path = pathlib.Path(os.path.expanduser(warm_start_from))
    # A model directory, or a checkpoint in one of its folders.
    folder = path if path.is_dir() else path.absolute().parents[1]
    directory = ModelDirectory(folder)
    if not directory.vocabulary_path.exists():
        return None
    return directory.vocabulary()


def _tokens(
    directory: ModelDirectory,
    read_pairs: Callable[[], Pairs],
    data_sha256: Callable[[], str],
    tokenizer: PairTokenizer,
    begun: Settings | None,
    cache_dir: pathlib.Path | None,
) -> tuple[TokenPairs, CorpusReport]:
    """Returns the tokens of the training corpus, made if there are none."""
    if begun is None and cache_dir is None and not directory.tokens.exists():
        return _make_tokens(directory, read_pairs, tokenizer)
    if begun is not None and data_sha256() != begun.data_sha256:
        raise _other_run(directory, "other training text", "this corpus")
    if cache_dir is not None:
        return token_cache.shared_tokens(
            cache_dir, read_pairs, data_sha256(), tokenizer
        )
    if token_files.are_whole(directory.tokens):
        pairs, report = token_files.load_pairs(directory.tokens)
        if report.key == tokenizer.key(data_sha256()):
            return pairs, report
    elif directory.tokens.exists():
        logging.warning(
            "%s is damaged, or of version 0.1.0: writing it again.",
            directory.tokens,
        )
    if directory.tokens.exists():
        shutil.rmtree(directory.tokens)
    return _make_tokens(directory, read_pairs, tokenizer)


def _make_tokens(
    directory: ModelDirectory,
    read_pairs: Callable[[], Pairs],
    tokenizer: PairTokenizer,
) -> tuple[TokenPairs, CorpusReport]:
    logging.info("Tokenizing the training corpus.")
    token_files.tokenize_pairs(read_pairs(), tokenizer, directory.tokens)
    return token_files.load_pairs(directory.tokens)


def _warn_of_odd_text(pairs: TokenPairs) -> None:
    """Warns of a corpus that can hardly be what was meant."""
    num_pairs = len(pairs.source_offsets) - 1
    count = min(num_pairs, _PAIRS_LOOKED_AT)
    looked_at = np.linspace(0, num_pairs - 1, count).astype(int)
    sources = _as_bytes(pairs.source_ids, pairs.source_offsets, looked_at)
    targets = _as_bytes(pairs.target_ids, pairs.target_offsets, looked_at)
    most = max(collections.Counter(targets).values())
    if count > 1 and most > _NEARLY_ALL * count:
        logging.warning(
            "%.0f%% of the training targets are one and the same line: is this "
            "the right file?",
            100 * most / count,
        )
    copies = sum(s == t for s, t in zip(sources, targets, strict=True))
    if copies > _NEARLY_ALL * count:
        logging.warning(
            "%.0f%% of the training targets are copies of their sources: are "
            "these the right files?",
            100 * copies / count,
        )


def _as_bytes(
    ids: np.ndarray, offsets: np.ndarray, indices: np.ndarray
) -> list[bytes]:
    """Returns sequences of ids, some of many, fit to be compared."""
    return [ids[offsets[n] : offsets[n + 1]].tobytes() for n in indices]


def _warn_of_unknown(pairs: TokenPairs, vocabulary: Vocabulary) -> None:
    """Warns of a vocabulary of others that lacks characters of the text."""
    ids = pairs.source_ids, pairs.target_ids
    unknown = sum(int((i == vocabulary.unknown_id).sum()) for i in ids)
    if unknown:
        logging.warning(
            "The vocabulary lacks what %d of the %d training tokens stand for, "
            "which are lost: learn one from this text, without --vocabulary.",
            unknown,
            sum(map(len, ids)),
        )


def _warn_of_warmup(hparams: HParams) -> None:
    if hparams.steps < hparams.warmup_steps:
        logging.warning(
            "steps=%d is below warmup_steps=%d, so the learning rate never "
            "reaches its peak: give more --steps, or a shorter warm-up with "
            "--override=warmup_steps=%d.",
            hparams.steps,
            hparams.warmup_steps,
            max(1, hparams.steps // 3),
        )
