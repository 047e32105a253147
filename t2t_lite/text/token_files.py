"""Token ids of sentence pairs: in memory, and as files of a whole corpus.

source.ids           the ids of all sources, one after the other: int32
source.offsets.npy   where each begins, and where the last one ends: int64
target.ids           likewise for the targets
target.offsets.npy
links.ids            if words are aligned: what word_links packs
links.offsets.npy
report.json          a CorpusReport
checksums.json       of these; version 0.1.0 wrote it in caches only
"""

import dataclasses
import functools
import hashlib
import itertools
import json
import os
import pathlib
from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple

import numpy as np
from absl import logging

from t2t_lite import files
from t2t_lite.english import counted
from t2t_lite.errors import InputError
from t2t_lite.text import pharaoh, word_links
from t2t_lite.text.vocabulary import FlatIds, Vocabulary
from t2t_lite.text.word_links import WordLinks

_LINES_AT_ONCE = 10_000
_CORPUS_END = b"\xff"  # Between two corpora in a hash; never in UTF-8.
_CHECKSUMS = "checksums.json"
_CHECKED = (
    "source.ids",
    "source.offsets.npy",
    "target.ids",
    "target.offsets.npy",
    "report.json",
)
_LINKS = ("links.ids", "links.offsets.npy")


class LinkedPair(NamedTuple):
    """A pair of lines whose words are aligned."""

    source: str
    target: str
    links: str  # a line in Pharaoh format


Pairs = Iterable[tuple[str, str]]  # (source, target)
AnyPairs = Pairs | Iterable[LinkedPair]


class TokenPairs(NamedTuple):
    """Token ids of sentence pairs, P of them, one after the other.

    Pair p is source_ids[source_offsets[p]:source_offsets[p + 1]], and so on;
    each sequence ends in EOS.

    >>> from t2t_lite.text.vocabulary import FlatIds
    >>> sources = FlatIds.from_lists([[5, 1], [6, 7, 1]])
    >>> targets = FlatIds.from_lists([[8, 1], [9, 1]])
    >>> pairs = TokenPairs.from_flat(sources, targets)
    >>> pairs.source_ids.tolist(), pairs.source_offsets.tolist()
    ([5, 1, 6, 7, 1], [0, 2, 5])
    """

    source_ids: np.ndarray  # int32, in memory or mapped
    source_offsets: np.ndarray  # int64 [P + 1]
    target_ids: np.ndarray  # int32, in memory or mapped
    target_offsets: np.ndarray  # int64 [P + 1]
    links: WordLinks | None = None  # if words are aligned

    @classmethod
    def from_flat(cls, sources: FlatIds, targets: FlatIds) -> "TokenPairs":
        """Returns the pairs of two equally long FlatIds."""
        return cls(
            source_ids=sources.ids,
            source_offsets=_offsets(sources.lengths),
            target_ids=targets.ids,
            target_offsets=_offsets(targets.lengths),
        )

    def take(self, indices: np.ndarray) -> "TokenPairs":
        """Returns the pairs of some indices, in memory."""
        return TokenPairs(
            *_some_sequences(self.source_ids, self.source_offsets, indices),
            *_some_sequences(self.target_ids, self.target_offsets, indices),
            links=None if self.links is None else self.links.take(indices),
        )

    @property
    def source_lengths(self) -> np.ndarray:
        """int64 [P], EOS included."""
        return np.diff(self.source_offsets)

    @property
    def target_lengths(self) -> np.ndarray:
        """int64 [P], EOS included."""
        return np.diff(self.target_offsets)


class TokensKey(NamedTuple):
    """Everything that determines the token ids of a corpus."""

    data_sha256: str  # of the text
    vocabulary_sha256: str
    max_length: int


@dataclasses.dataclass(frozen=True)
class PairTokenizer:
    """How the pairs of a corpus become token ids.

    Args:
        vocabulary: Vocabulary, which encodes the sources.
        encode_targets: from list of str to FlatIds, that of the task.
        max_length: int; pairs with a longer side, EOS included, are dropped.
    """

    vocabulary: Vocabulary
    encode_targets: Callable[[list[str]], FlatIds]
    max_length: int

    def encode(self, pairs: AnyPairs) -> tuple[FlatIds, FlatIds]:
        """Returns the ids of the sources and of the targets, of any length."""
        sources, targets = [], []
        for source, target, *_ in pairs:
            sources.append(source)
            targets.append(target)
        return (
            self.vocabulary.encode_flat(sources),
            self.encode_targets(targets),
        )

    def key(self, data_sha256: str) -> TokensKey:
        """Returns the TokensKey of the text with this hash."""
        return TokensKey(data_sha256, self.vocabulary.sha256, self.max_length)


class CorpusReport(NamedTuple):
    """What became of a corpus's pairs when it was tokenized."""

    kept: int
    dropped_long: int  # more than max_length tokens on a side
    dropped_blank: int  # no text on a side
    data_sha256: str  # of the text
    vocabulary_sha256: str
    max_length: int
    kept_by_corpus: Sequence[int] = ()  # unknown for older tokens

    @property
    def key(self) -> TokensKey:
        """TokensKey of these tokens."""
        return TokensKey(
            self.data_sha256, self.vocabulary_sha256, self.max_length
        )

    def __str__(self) -> str:
        return (
            f"{counted(self.kept, 'pair')}; dropped {self.dropped_long} "
            f"over-long and {self.dropped_blank} with a blank side"
        )


def require_pairs(split: str, pairs: Sequence[tuple[str, str]]) -> None:
    """Raises InputError if a split has no pairs to score on."""
    if not pairs:
        raise InputError(f"the {split} text has no pairs to score on")


def hash_pairs(pairs: AnyPairs) -> str:
    """Returns the hex sha256 of text pairs, which names a corpus's content."""
    return hash_corpora([pairs])


def hash_corpora(corpora: Iterable[AnyPairs]) -> str:
    """Returns the hex sha256 of several corpora, including where each ends.

    That of one corpus is its `hash_pairs`.
    """
    digest = hashlib.sha256()
    for n, pairs in enumerate(corpora):
        if n > 0:
            digest.update(_CORPUS_END)
        for pair in pairs:
            digest.update(_hashed(pair))
    return digest.hexdigest()


def _hashed(pair: tuple[str, str] | LinkedPair) -> bytes:
    return "".join(f"{part}\n" for part in pair).encode()


def encode_pairs(
    pairs: Iterable[tuple[str, str]],
    vocabulary: Vocabulary,
    encode_targets: Callable[[list[str]], FlatIds],
) -> TokenPairs:
    """Returns the TokenPairs of text pairs, in memory, all of them kept.

    Args:
        pairs: (source, target) lines.
        vocabulary: Vocabulary, which encodes the sources.
        encode_targets: from list of str to FlatIds, that of the task.
    """
    sources, targets = (list(side) for side in zip(*pairs, strict=True))
    return TokenPairs.from_flat(
        vocabulary.encode_flat(sources), encode_targets(targets)
    )


def tokenize_pairs(
    corpora: Iterable[AnyPairs],
    tokenizer: PairTokenizer,
    directory: str | os.PathLike,
) -> CorpusReport:
    """Writes the token files of corpora, one after the other, and a report.

    The directory appears once it is complete.

    Args:
        corpora: each (source, target) lines, or LinkedPairs.
        tokenizer: PairTokenizer.
        directory: path that does not exist yet.

    Raises:
        InputError: no pair is left.
    """
    with files.atomic_folder(directory) as folder:
        return write_pairs(corpora, tokenizer, folder)


def write_pairs(
    corpora: Iterable[AnyPairs], tokenizer: PairTokenizer, folder: pathlib.Path
) -> CorpusReport:
    """Writes what `tokenize_pairs` does into an existing folder."""
    counts = _Counts()
    with (
        _SideWriter(folder / "source") as source,
        _SideWriter(folder / "target") as target,
        _LinksWriter(folder / "links", tokenizer.vocabulary) as links,
    ):
        for n, pairs in enumerate(corpora):
            counts.begin_corpus(n)
            for chunk in _chunks(pairs, _LINES_AT_ONCE):
                with_text = [pair for pair in chunk if _has_text(pair)]
                source_ids, target_ids = tokenizer.encode(with_text)
                longest = np.maximum(source_ids.lengths, target_ids.lengths)
                is_kept = longest <= tokenizer.max_length
                source.write(source_ids, is_kept)
                target.write(target_ids, is_kept)
                links.write(with_text, (source_ids, target_ids), is_kept)
                counts.add(chunk, len(with_text), int(is_kept.sum()))
    links.require_any()
    report = counts.report(tokenizer)
    (folder / "report.json").write_text(json.dumps(report._asdict()))
    (folder / _CHECKSUMS).write_text(json.dumps(_checksums(folder)))
    return report


class _Counts:
    """What becomes of the pairs of corpora, and the hash of their text."""

    def __init__(self):
        self.seen = self.with_text = 0
        self.kept_by_corpus = []
        self.digest = hashlib.sha256()

    def begin_corpus(self, n):
        self.kept_by_corpus.append(0)
        if n > 0:
            self.digest.update(_CORPUS_END)

    def add(self, pairs, num_with_text, num_kept):
        self.digest.update(b"".join(map(_hashed, pairs)))
        self.seen += len(pairs)
        self.with_text += num_with_text
        self.kept_by_corpus[-1] += num_kept

    def report(self, tokenizer):
        kept = sum(self.kept_by_corpus)
        if not kept:
            raise InputError(
                f"no pair of the {self.seen} in the corpus has text on both "
                f"sides and at most max_length={tokenizer.max_length} tokens"
            )
        return CorpusReport(
            kept=kept,
            dropped_long=self.with_text - kept,
            dropped_blank=self.seen - self.with_text,
            **tokenizer.key(self.digest.hexdigest())._asdict(),
            kept_by_corpus=self.kept_by_corpus,
        )


def _has_text(pair):
    source, target, *_ = pair
    return bool(source.strip() and target.strip())


def _chunks(items, size):
    items = iter(items)
    while chunk := list(itertools.islice(items, size)):
        yield chunk


class _SideWriter:
    """Writes one side's ids to PATH.ids, and at the end PATH.offsets.npy."""

    def __init__(self, path):
        self.path = path
        self.lengths = [np.zeros(0, np.int32)]

    def __enter__(self):
        self.file = open(f"{self.path}.ids", "wb")
        return self

    def write(self, sequences, is_kept):
        """Writes the sequences that are to be kept."""
        ids, lengths = sequences
        self.lengths.append(lengths[is_kept].astype(np.int32))
        self.file.write(ids[np.repeat(is_kept, lengths)].tobytes())

    def __exit__(self, *_):
        self.file.close()
        lengths = np.concatenate(self.lengths)
        np.save(f"{self.path}.offsets.npy", _offsets(lengths))


class _LinksWriter:
    """Writes the links of words, in the files of a side, if there are any."""

    def __init__(self, path, vocabulary):
        self._path, self._writer = path, None
        self._vocabulary = vocabulary
        self._num_left_out = 0

    def __enter__(self):
        return self

    def write(self, pairs, ids, is_kept):
        """Writes the links of the pairs that are to be kept."""
        if not pairs or not isinstance(pairs[0], LinkedPair):
            return
        if self._writer is None:
            self._writer = _SideWriter(self._path).__enter__()
        links = [pharaoh.parse(pair.links) for pair in pairs]
        packed, is_left_out = word_links.pack_consistent_links(
            links, pairs, ids, kinds=self._kinds
        )
        self._num_left_out += int((is_left_out & is_kept).sum())
        self._writer.write(packed, is_kept)

    def require_any(self):
        """Raises InputError if pairs have links but none is kept."""
        if self._writer is None:
            return
        if not any(part.any() for part in self._writer.lengths):
            raise InputError("none of the training pairs kept has usable links")
        if self._num_left_out:
            logging.warning(
                "The links of %d pairs are ignored: the vocabulary splits "
                "their text into different words.",
                self._num_left_out,
            )

    @functools.cached_property
    def _kinds(self):
        return word_links.token_kinds(self._vocabulary)

    def __exit__(self, *error):
        if self._writer is not None:
            self._writer.__exit__(*error)


def _offsets(lengths):
    return np.concatenate([[0], np.cumsum(lengths, dtype=np.int64)])


def _some_sequences(ids, offsets, indices):
    found = [ids[offsets[n] : offsets[n + 1]] for n in indices]
    return np.concatenate(found), _offsets([len(part) for part in found])


def are_whole(directory: str | os.PathLike) -> bool:
    """Returns whether there are token files, with their original content."""
    directory = pathlib.Path(directory)
    try:
        return files.read_json(directory / _CHECKSUMS) == _checksums(directory)
    except (FileNotFoundError, NotADirectoryError, ValueError):
        return False


def _checksums(directory):
    checksums = {}
    has_links = (directory / _LINKS[0]).exists()
    for name in (*_CHECKED, *(_LINKS if has_links else ())):
        with open(directory / name, "rb") as file:
            checksums[name] = hashlib.file_digest(file, "sha256").hexdigest()
    return checksums


def load_pairs(directory: str | os.PathLike) -> tuple[TokenPairs, CorpusReport]:
    """Returns (TokenPairs mapped into memory, CorpusReport) of a directory."""
    directory = pathlib.Path(directory)

    def load(side):
        ids = np.memmap(directory / f"{side}.ids", np.int32, mode="r")
        path = directory / f"{side}.offsets.npy"
        return ids, np.load(path, mmap_mode="r")

    report = json.loads((directory / "report.json").read_text())
    has_links = (directory / _LINKS[0]).exists()
    source_ids, source_offsets = load("source")
    target_ids, target_offsets = load("target")
    pairs = TokenPairs(
        source_ids=source_ids,
        source_offsets=source_offsets,
        target_ids=target_ids,
        target_offsets=target_offsets,
        links=WordLinks(*load("links")) if has_links else None,
    )
    return pairs, CorpusReport(**report)
