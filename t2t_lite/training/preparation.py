"""What a run needs before its first update, and whether it may continue."""

import dataclasses
import functools
import os
import pathlib
import shutil
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from absl import logging

from t2t_lite import files, tasks
from t2t_lite.errors import InputError, require
from t2t_lite.hardware import Hardware, find_hardware, installed_bytes
from t2t_lite.hparams import MAY_CHANGE, HParams
from t2t_lite.optimization.guided_alignment import guided_head
from t2t_lite.optimization.micro_batches import (
    fitting_micro_batch_tokens,
    with_fitting_parts,
)
from t2t_lite.storage import origin, settings_file
from t2t_lite.storage.model_directory import ModelDirectory, Settings
from t2t_lite.task import Task
from t2t_lite.text import (
    segmentation,
    sentences,
    token_cache,
    token_files,
)
from t2t_lite.text.epochs import Weighting
from t2t_lite.text.token_files import (
    CorpusReport,
    Pairs,
    PairTokenizer,
    TokenPairs,
)
from t2t_lite.text.vocabulary import Vocabulary
from t2t_lite.training import plausibility, resuming
from t2t_lite.training.options import RunOptions
from t2t_lite.training.training_text import TrainingText

# The settings that decide which vocabulary is learned from a text.
_VOCABULARY_SETTINGS = (
    "task",
    "vocabulary_type",
    "vocabulary_size",
    "reserved_symbols",
)
_LINES_LOOKED_AT = 100_000  # Enough to tell a share of 1% from one of 0.9%.


class Prepared(NamedTuple):
    """What a run is made of."""

    vocabulary: Vocabulary
    pairs: TokenPairs
    settings: Settings
    weighting: Weighting | None  # None: all pairs are drawn equally often


@dataclasses.dataclass(frozen=True)
class _Start:
    """What a run is started with, and the run begun in its directory."""

    directory: ModelDirectory
    task: Task
    hparams: HParams
    text: TrainingText
    options: RunOptions
    cache_dir: pathlib.Path | None
    previous: Settings | None  # of the run to continue; None for a new one

    def read_pairs(self) -> Pairs:
        """Reads the training pairs."""
        return self.text.readers["train"]()

    @functools.cached_property
    def data_sha256(self) -> str:
        """The hash of the training text, which is read once to compute it.

        Ask for it only if there is something to compare it with.
        """
        return token_files.hash_corpora(self.text.read_corpora())

    def other_run(self, before: str, now: str | os.PathLike) -> InputError:
        """Returns the error for continuing with something else."""
        return InputError(
            f"{self.directory.path} was trained with {before}; received {now}: "
            "use what it was trained with, or give another --model_dir"
        )


def prepare(
    directory: ModelDirectory,
    hparams: HParams,
    text: TrainingText,
    options: RunOptions,
    warm_start: tuple[str, dict[str, Any]] | None = None,
) -> Prepared:
    """Fills a model directory, or checks that a run may continue in it.

    Args:
        directory: ModelDirectory.
        hparams: HParams.
        text: TrainingText, checked.
        options: RunOptions, whose precision is settled.
        warm_start: (description, tensors) that a new run starts from, if any.

    Raises:
        InputError: the run was begun with something else, which is named; or
            the corpus or the vocabulary cannot be used.
    """
    start = _Start(
        directory=directory,
        task=tasks.task_of(hparams),
        hparams=hparams,
        text=text,
        options=options,
        cache_dir=token_folder(directory, options),
        previous=previous_settings(directory),
    )
    _require_begun_here(start)
    _require_same_hparams(start)
    _require_same_weights(start)
    _require_alignments(start)
    settings_file.require_own(directory.path)
    directory.path.mkdir(parents=True, exist_ok=True)
    vocabulary, is_learned = _vocabulary(start)
    if warm_start is not None and start.previous is None:
        description, tensors = warm_start
        remedy = "give that one as --vocabulary, or its model directory"
        origin.require_vocabulary(
            tensors, vocabulary.sha256, description, remedy=remedy
        )
    pairs, report = _tokens(start, vocabulary)
    if pairs.links is not None:
        pairs = pairs._replace(links=pairs.links.for_vocabulary(vocabulary))
    logging.info("Training corpus: %s.", report)
    _warn_of_implausible(start, vocabulary, pairs)
    settings = _settings(
        start, vocabulary, is_learned, pairs=pairs, report=report
    )
    _save(start, vocabulary, settings)
    weighting = _weighting(text.weights, report.kept_by_corpus)
    return Prepared(vocabulary, pairs, settings, weighting=weighting)


def _weighting(
    weights: Sequence[float], sizes: Sequence[int]
) -> Weighting | None:
    if not weights:
        return None
    if 0 in sizes:
        raise InputError(
            "each weighted corpus must have at least one training pair; corpus "
            f"{sizes.index(0) + 1} of {len(sizes)} has none"
        )
    return Weighting(sizes, weights)


def previous_settings(directory: ModelDirectory) -> Settings | None:
    """Returns the Settings of the run to continue there; None for a new one.

    A run that has saved no checkpoint may start over with different ones.

    Raises:
        InputError: they cannot be read.
    """
    is_begun = directory.settings_path.exists() and is_trained(directory)
    return directory.settings() if is_begun else None


def _warn_of_implausible(
    start: _Start, vocabulary: Vocabulary, pairs: TokenPairs
) -> None:
    if start.previous is None:
        plausibility.warn_of_odd_text(pairs, vocabulary)
        plausibility.warn_of_unknown(pairs, vocabulary)
        if start.options.warm_start_from is None:  # Else it gives the sizes.
            plausibility.warn_of_depths(start.hparams)
    every = start.options.evaluate_every_steps
    plausibility.warn_of_steps(start.hparams, every)


def _settings(
    start: _Start,
    vocabulary: Vocabulary,
    is_learned: bool,
    pairs: TokenPairs,
    report: CorpusReport,
) -> Settings:
    previous = start.previous
    return Settings(
        hparams=start.hparams,
        corpus=start.text.flags,
        data_sha256=report.data_sha256,
        vocabulary_sha256=vocabulary.sha256,
        vocabulary_size=vocabulary.size,
        target_vocabulary_size=(
            None if vocabulary.target is vocabulary else vocabulary.target.size
        ),
        micro_batch_tokens=_micro_batch_tokens(start, vocabulary),
        **_sentence_figures(start, vocabulary, pairs),
        vocabulary_is_learned=(
            is_learned if previous is None else previous.vocabulary_is_learned
        ),
        corpus_weights=list(start.text.weights) or None,
        language_tokens=bool(vocabulary.language_tokens),
        alignment_head=(
            _alignment_head(start)
            if previous is None
            else previous.alignment_head
        ),
        precision=start.options.precision,
    )


def _alignment_head(start: _Start) -> list | None:
    """Returns the head that learns alignments, or that of the warm start."""
    hparams, warm_start_from = start.hparams, start.options.warm_start_from
    if hparams.is_guided:
        return list(guided_head(hparams))
    if warm_start_from is None:
        return None
    directory = ModelDirectory(resuming.directory_of(warm_start_from))
    if not directory.settings_path.exists():
        return None
    settings = directory.settings()
    sizes = hparams.decoder_layers, hparams.num_heads
    other = settings.hparams.decoder_layers, settings.hparams.num_heads
    return settings.alignment_head if sizes == other else None


def _save(start: _Start, vocabulary: Vocabulary, settings: Settings) -> None:
    """Writes all that a later command needs."""
    directory = start.directory
    if start.previous is None:
        start.task.save_extras(
            directory,
            start.hparams,
            vocabulary=vocabulary,
            read_pairs=start.read_pairs,
        )
    vocabulary.save_in(directory.path)
    # Last, so that a directory with settings has all the rest.
    directory.save_settings(settings)


def is_trained(directory: ModelDirectory) -> bool:
    """Returns whether there is a checkpoint, or a part of one."""
    folders = (directory.checkpoints, directory.best, directory.averaged)
    return any(any(folder.glob("step-*")) for folder in folders)


def token_folder(
    directory: ModelDirectory, options: RunOptions
) -> pathlib.Path | None:
    """Returns the folder of --cache_dir, None if there is none.

    Raises:
        InputError: it is not a folder, or a remote model directory needs one.
    """
    path = options.cache_dir
    if path is None:
        if files.is_remote(directory.path):
            raise InputError(
                "token files are mapped into memory, so they cannot be in "
                f"{directory.path}: give a local folder as --cache_dir"
            )
        return None
    folder = files.to_path(path)
    if os.path.lexists(folder) and not os.path.isdir(folder):
        raise InputError(f"--cache_dir must be a folder; {folder} is not one")
    return folder


def _require_begun_here(start: _Start) -> None:
    """Raises InputError if the model directory holds an imported model."""
    if start.previous is not None and not start.previous.data_sha256:
        path = start.directory.path
        raise InputError(
            f"{path} holds an imported model: continue training it with "
            f"--warm_start_from={path}, in a new --model_dir"
        )


def _require_same_hparams(start: _Start) -> None:
    if start.previous is None:
        return
    for field in dataclasses.fields(start.hparams):
        name = field.name
        before = getattr(start.previous.hparams, name)
        now = getattr(start.hparams, name)
        if before != now and name not in MAY_CHANGE:
            raise start.other_run(f"{name}={before}", f"{name}={now}")


def _require_same_weights(start: _Start) -> None:
    if start.previous is None:
        return
    before = start.previous.corpus_weights or []
    now = list(start.text.weights)
    if before != now:
        raise start.other_run(
            f"corpus_weights={_weights_text(before)}",
            f"corpus_weights={_weights_text(now)}",
        )


def _require_alignments(start: _Start) -> None:
    """Raises InputError if the links of words cannot be learned from.

    In a new run, they are read for this before the long work.
    """
    require(
        "guided_alignment must be above 0 where there are alignments, and 0 "
        "where there are none",
        start.hparams.is_guided == (start.text.alignments is not None),
        guided_alignment=start.hparams.guided_alignment,
    )
    if start.hparams.is_guided and start.previous is None:
        start.text.check_alignments()


def _weights_text(weights: list[float]) -> str:
    return ",".join(repr(w).removesuffix(".0") for w in weights) or "none"


def _micro_batch_tokens(start: _Start, vocabulary: Vocabulary) -> int:
    options = start.options
    if options.micro_batch_tokens is not None:
        return options.micro_batch_tokens
    if start.previous is not None:
        return start.previous.micro_batch_tokens
    return fitting_micro_batch_tokens(
        start.hparams,
        max(vocabulary.size, vocabulary.target.size),
        options.precision,
        hardware=hardware_for(start.hparams, vocabulary, options),
    )


def hardware_for(
    hparams: HParams, vocabulary: Vocabulary, options: RunOptions
) -> Hardware:
    """Returns the Hardware of a replica, with the parts that it computes.

    Args:
        hparams: HParams.
        vocabulary: Vocabulary.
        options: RunOptions.
    """
    found = find_hardware(options.memory_limit_gib)
    if not options.in_parts:
        return dataclasses.replace(found, most_parts=1)
    return with_fitting_parts(
        found,
        hparams,
        max(vocabulary.size, vocabulary.target.size),
        memory_bytes=installed_bytes(options.memory_limit_gib),
    )


def _sentence_figures(
    start: _Start, vocabulary: Vocabulary, pairs: TokenPairs
) -> dict[str, Any]:
    """Returns the fields of Settings that decide how lines are split later."""
    names = ("source_language", "multi_sentence_share", "long_line_tokens")
    if start.previous is not None:
        return {name: getattr(start.previous, name) for name in names}
    starts = pairs.source_offsets
    every = -(-len(starts) // _LINES_LOOKED_AT)
    sources = vocabulary.decode(
        pairs.source_ids[starts[n] : starts[n + 1]].tolist()
        for n in range(0, len(starts) - 1, every)
    )
    language = start.text.source_language
    share = sentences.multi_sentence_share(sources, language)
    long_line = int(np.percentile(pairs.source_lengths, 99))
    return dict(zip(names, (language, share, long_line), strict=True))


def _vocabulary(start: _Start) -> tuple[Vocabulary, bool]:
    """Returns the run's Vocabulary, and whether it is learned from its text.

    A warm start needs the vocabulary of the model that it starts from, whose
    embedding has a row for each of its ids.
    """
    options, previous = start.options, start.previous
    warm = _vocabulary_beside(options.warm_start_from)
    vocabulary, is_learned = _unchecked_vocabulary(start, warm)
    is_given = bool(options.vocabulary) or warm is not None
    is_new_to_text = is_given and previous is None
    start.task.check_vocabulary(
        vocabulary, start.read_pairs if is_new_to_text else None
    )
    _require_reserved(start.hparams, vocabulary)
    if start.hparams.subword_sampling:
        segmentation.require_all_ids(vocabulary)
    if warm is not None and warm.sha256 != vocabulary.sha256:
        raise InputError(
            f"{options.warm_start_from} has another vocabulary than this run: "
            "start without --vocabulary, in a new --model_dir"
        )
    if previous is not None and vocabulary.sha256 != previous.vocabulary_sha256:
        received = options.vocabulary or "one learned from the training text"
        raise start.other_run("a different vocabulary", received)
    return vocabulary, is_learned


def _require_reserved(hparams: HParams, vocabulary: Vocabulary) -> None:
    known = vocabulary.reserved_ids(hparams.reserved)
    missing = [symbol for symbol in hparams.reserved if symbol not in known]
    if missing:
        raise InputError(
            "a vocabulary must have each of reserved_symbols as a single id; "
            f"this one lacks {missing[0]}: start without --vocabulary and "
            "--warm_start_from, or give different ones"
        )


def _unchecked_vocabulary(
    start: _Start, warm: Vocabulary | None
) -> tuple[Vocabulary, bool]:
    """Returns what `_vocabulary` does: a given one, its own, or a learned one.

    Args:
        start: _Start.
        warm: that of the model to start from, None if there is none.
    """
    directory, hparams = start.directory, start.hparams
    if start.options.vocabulary:
        return Vocabulary.load(start.options.vocabulary), False
    if start.previous is not None and directory.has_vocabulary():
        return directory.vocabulary(), False
    if warm is not None:
        return warm, False
    if _has_vocabulary(start):
        return directory.vocabulary(), True
    logging.info("Learning the vocabulary.")
    learned = start.task.learn_vocabulary(
        start.read_pairs,
        kind=hparams.vocabulary_type,
        size=hparams.vocabulary_size,
        reserved=hparams.reserved,
    )
    return learned, True


def _has_vocabulary(start: _Start) -> bool:
    """Returns whether a run without checkpoints left the vocabulary to use."""
    directory = start.directory
    if not directory.settings_path.exists():
        return False  # It may be of another text, or of another size.
    try:
        before = directory.settings()
        left = directory.unchecked_vocabulary()
    except InputError:
        return False
    return (
        before.vocabulary_is_learned
        and before.vocabulary_sha256 == left.sha256
        and all(
            getattr(before.hparams, name) == getattr(start.hparams, name)
            for name in _VOCABULARY_SETTINGS
        )
        and before.data_sha256 == start.data_sha256
    )


def _vocabulary_beside(warm_start_from: str | None) -> Vocabulary | None:
    """Returns the Vocabulary of the model to start from, None if not known."""
    if warm_start_from is None:
        return None
    directory = ModelDirectory(resuming.directory_of(warm_start_from))
    return directory.vocabulary() if directory.has_vocabulary() else None


def _tokens(
    start: _Start, vocabulary: Vocabulary
) -> tuple[TokenPairs, CorpusReport]:
    """Returns the tokens of the training corpus, made if there are none."""
    previous, cache_dir = start.previous, start.cache_dir
    folder = start.directory.tokens
    tokenizer = PairTokenizer(
        vocabulary,
        functools.partial(start.task.encode_targets, vocabulary),
        start.hparams.max_length,
    )
    if previous is None and cache_dir is None and not folder.exists():
        return _make_tokens(start, tokenizer)
    if previous is not None and start.data_sha256 != previous.data_sha256:
        raise start.other_run("different training text", "this corpus")
    if cache_dir is not None:
        return token_cache.shared_tokens(
            cache_dir,
            start.text.read_corpora,
            start.data_sha256,
            tokenizer=tokenizer,
        )
    return _own_tokens(start, tokenizer) or _make_tokens(start, tokenizer)


def _own_tokens(
    start: _Start, tokenizer: PairTokenizer
) -> tuple[TokenPairs, CorpusReport] | None:
    """Returns the tokens in the model directory, None if they are of no use."""
    folder = start.directory.tokens
    if token_files.are_whole(folder):
        pairs, report = token_files.load_pairs(folder)
        is_ours = report.key == tokenizer.key(start.data_sha256)
        return (pairs, report) if is_ours else None
    if folder.exists():
        logging.warning(
            "%s is damaged or was written by version 0.1.0: rewriting it.",
            folder,
        )
    return None


def _make_tokens(
    start: _Start, tokenizer: PairTokenizer
) -> tuple[TokenPairs, CorpusReport]:
    """Returns new tokens, which replace any in the model directory."""
    folder = start.directory.tokens
    if folder.is_dir():
        shutil.rmtree(folder)
    folder.unlink(missing_ok=True)
    logging.info("Tokenizing the training corpus.")
    token_files.tokenize_pairs(start.text.read_corpora(), tokenizer, folder)
    return token_files.load_pairs(folder)
