"""Translates lines as a Translator does, by CTranslate2's search.

Lines are split, ordered and joined as ever. What differs is the search:

- CTranslate2 keeps only those ends that rank among the W best continuations of
  a step, and ours those among the 2 W best. So a few texts differ; ours then
  score higher.
- At a length penalty above 0, hypotheses that a search without one has found
  are ranked by the paper's formula. Ours has it in the search itself.
- A beam of width 1 takes the likeliest token and never looks back.
- A source of no token but EOS has no translation.
- Nothing is sampled. Words cannot be suppressed, but tokens can. A prefix is
  the tokens of its text alone, without the space at its end: where it cuts a
  word, an odd one follows.

A model directory is converted once for each quantization. The result is kept in
<model_dir>/ctranslate2/<name>-<quantization>/. Its name is made from a hash of
the checkpoint, so other weights never pass for these; what was converted from a
checkpoint that is gone is removed when another is written.
"""

import contextlib
import dataclasses
import hashlib
import json
import os
import pathlib
import shutil
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from absl import logging

from t2t_lite import files, hardware
from t2t_lite.decoding import shapes, steering
from t2t_lite.decoding.beam_search import Hypotheses
from t2t_lite.decoding.engine import Engine
from t2t_lite.decoding.search_options import SearchOptions
from t2t_lite.decoding.translation import LineTranslator
from t2t_lite.errors import InputError, require
from t2t_lite.formats import ctranslate2
from t2t_lite.formats.portable import PortableModel
from t2t_lite.hparams import MAY_CHANGE, HParams
from t2t_lite.storage import checkpoints
from t2t_lite.storage.model_directory import ModelDirectory
from t2t_lite.text.sentences import Splitting
from t2t_lite.text.vocabulary import Vocabulary
from t2t_lite.token_ids import EOS

if TYPE_CHECKING:
    import tensorflow as tf

# Higher whenever the same checkpoint is written otherwise than before.
_FORMAT_VERSION = 1
_FOLDER = "ctranslate2"  # Of a model directory.
_SOURCES = "source_files"  # In metadata.json: hashes of what was converted.


class CTranslate2Translator(LineTranslator):
    """A LineTranslator whose search is CTranslate2's.

    Args:
        engine: Engine.
        vocabulary: Vocabulary.
        options: SearchOptions.
        splitting: Splitting.
        weights_name: what tells these weights, and how they are kept, from
            others.
    """

    _accepted = "a str or a list of str"
    _takes_tensors = False  # A graph cannot hold CTranslate2.

    def __init__(
        self,
        engine: Engine,
        vocabulary: Vocabulary,
        options: SearchOptions,
        splitting: Splitting,
        weights_name: str,
    ):
        super().__init__(engine, vocabulary, options, splitting)
        self._weights_name = weights_name

    def sha256(self) -> str:
        """Returns the hash of all that shapes an output but the options."""
        parts = [self.vocabulary.sha256, self._splitting, self._weights_name]
        return hashlib.sha256(repr(parts).encode()).hexdigest()


def open_translator(
    model_dir: str | os.PathLike,
    checkpoint: str = "last",
    average_last: int = 1,
    precision: str = "float32",
    xla: bool | None = None,
    sentences: str = "auto",
    devices: str | int = 1,
    quantization: str | None = None,
    **options: Any,
) -> CTranslate2Translator:
    """Returns the translator of a model directory, converted if need be.

    Args:
        model_dir: path of a model directory on this machine, or of a folder
            that `ctranslate2.write` wrote.
        checkpoint: "last", "best", "averaged", or the path of a checkpoint.
        average_last: int; above 1, the mean of that many of the last ones.
        precision: "float32"; CTranslate2's others are a `quantization`.
        xla: None or False.
        sentences: that of a Translator.
        devices: "all" GPUs of the machine (without any, its CPU), or how many.
        quantization: what the weights are kept and multiplied in: "int8",
            "int8_float32", "float16" or "bfloat16"; None for float32, or for
            what a folder has.
        options: what to change in the SearchOptions of the model's settings.

    Raises:
        InputError: ctranslate2 is not installed, it cannot run the model, the
            directory has no such model, or an option is wrong.
    """
    ctranslate2.load_library()
    _require_kept(model_dir, precision, xla)
    ctranslate2.require_quantization(quantization)
    if ctranslate2.is_written(model_dir):
        require(
            "a folder for CTranslate2 holds one model: checkpoint must be last "
            "and average_last 1",
            (checkpoint, average_last) == ("last", 1),
            checkpoint=checkpoint,
            average_last=average_last,
        )
        return _open_folder(
            model_dir, sentences, devices, quantization, **options
        )
    directory = ModelDirectory(model_dir)
    directory.require_task("translation")
    settings = directory.settings()
    ctranslate2.require_carried(settings.hparams)
    search_options = _kept_options(settings.hparams, **options)
    workers = find_workers(devices, quantization)
    conversion = _Conversion(
        directory,
        dataclasses.replace(
            settings.hparams, max_extra_length=search_options.max_extra_length
        ),
        directory.vocabulary(),
        (checkpoint, average_last),
        quantization,
    )
    with conversion.folder() as folder:
        try:
            library = workers.load(folder)
        except InputError as error:
            raise InputError(
                f"{error} (if it is damaged, delete that folder: it is written "
                "again)"
            ) from None
    model = _Loaded(
        library,
        conversion.hparams,
        conversion.vocabulary,
        conversion.name,
        conversion.description,
    )
    return model.translator(search_options, settings.splitting(sentences))


def _open_folder(
    folder: str | os.PathLike,
    sentences: str,
    devices: str | int,
    quantization: str | None,
    **options: Any,
) -> CTranslate2Translator:
    """Returns the translator of a folder that `ctranslate2.write` wrote.

    Args: those of `open_translator`.
    """
    folder = files.to_path(folder)
    metadata = ctranslate2.read_metadata(folder)
    hparams = metadata["hparams"]
    splitting = Splitting(**metadata.get("splitting", {}))
    search_options = _kept_options(hparams, **options)
    most = ctranslate2.num_positions(hparams) - hparams.max_length
    require(
        f"max_extra_length must be at most {most}, for which the folder has "
        "positions",
        search_options.max_extra_length <= most
        or hparams.positions == "learned",
        max_extra_length=search_options.max_extra_length,
    )
    model = _Loaded(
        find_workers(devices, quantization).load(folder),
        hparams,
        ctranslate2.load_vocabulary(folder),
        f"{files.sha256(folder / ctranslate2.MODEL)}-{quantization}-{hparams}",
        str(folder),
    )
    if sentences != "auto":
        whole_up_to = hparams.max_length if sentences == "whole" else 0
        splitting = splitting._replace(whole_up_to=whole_up_to)
    return model.translator(search_options, splitting)


class _Loaded(NamedTuple):
    """A model that CTranslate2 has loaded."""

    library: Any  # ctranslate2.Translator
    hparams: HParams
    vocabulary: Vocabulary
    name: str  # what tells the weights, and how they are kept, from others
    description: str  # where the weights are from

    def translator(
        self, options: SearchOptions, splitting: Splitting
    ) -> CTranslate2Translator:
        """Returns the translator that searches with some options."""
        search = CTranslate2Search(
            self.library, self.vocabulary, self.hparams, options
        )
        engine = Engine(
            search,
            self.hparams.max_length,
            self.description,
            translate_prefixed=search.translate_prefixed,
        )
        return CTranslate2Translator(
            engine, self.vocabulary, options, splitting, self.name
        )


def _kept_options(hparams: HParams, **options: Any) -> SearchOptions:
    """Returns the SearchOptions, which this engine can keep."""
    found = SearchOptions.from_hparams(
        hparams, CTranslate2Translator, **options
    )
    rule = "CTranslate2 suppresses tokens alone: give suppress_pieces"
    require(rule, not found.suppress, suppress=found.suppress)
    rule = "CTranslate2 finds no alternatives here: leave them out"
    require(rule, not found.alternatives, alternatives=found.alternatives)
    rule = "CTranslate2 takes no glossary here: leave it out"
    require(rule, not found.glossary, terms=len(found.glossary))
    given = {name: options[name] for name in found.steering if "sample" in name}
    rule = "CTranslate2's samples depend on their batch: leave sampling out"
    require(rule, not found.samples, **given)
    return found


def _require_kept(
    model_dir: str | os.PathLike, precision: str, xla: bool | None
) -> None:
    """Raises InputError where this engine cannot keep what is asked for."""
    if files.is_remote(model_dir):
        raise InputError(
            "CTranslate2 reads the files of this machine only: copy "
            f"{model_dir} to it"
        )
    require(
        "CTranslate2 has no XLA: xla must be None or False",
        not xla,
        xla=xla,
    )
    require(
        "CTranslate2 computes in a quantization: precision must be float32, "
        f"and quantization one of {', '.join(ctranslate2.QUANTIZATIONS)}",
        precision == "float32",
        precision=precision,
    )


class Workers(NamedTuple):
    """What computes: threads of the CPU, or GPUs."""

    device: str  # "cpu" or "cuda"
    device_indices: list[int]
    inter_threads: int  # batches side by side
    intra_threads: int  # of each batch
    compute_type: str

    def load(self, folder: pathlib.Path) -> Any:
        """Returns the ctranslate2.Translator of a folder."""
        try:
            translator = ctranslate2.load_library().Translator(
                str(folder),
                device=self.device,
                device_index=self.device_indices,
                compute_type=self.compute_type,
                inter_threads=self.inter_threads,
                intra_threads=self.intra_threads,
            )
        except (RuntimeError, ValueError) as error:
            raise InputError(
                f"CTranslate2 cannot load {folder}: {error}"
            ) from None
        is_int8 = self.device == "cpu" and "int8" in translator.compute_type
        if is_int8 and hardware.lacks_vnni():
            logging.warning(
                "This CPU has no instructions for int8 products: float32 may "
                "be faster."
            )
        return translator


def find_workers(
    devices: str | int = 1, quantization: str | None = None
) -> Workers:
    """Returns the Workers of this machine: its GPUs, else its CPU.

    Each core of a CPU searches a batch of its own, which is faster than batches
    that share all cores.

    Args:
        devices: that of `open_translator`.
        quantization: that of `open_translator`.

    Raises:
        InputError: there are not so many devices, or they cannot compute in
            such numbers.
    """
    library = ctranslate2.load_library()
    num_gpus = library.get_cuda_device_count()
    most = max(1, num_gpus)
    count = int(devices) if str(devices).isdecimal() else 0
    require(
        f"devices must be all, or from 1 to {most} on this machine",
        devices == "all" or 0 < count <= most,
        devices=devices,
    )
    device = "cuda" if num_gpus else "cpu"
    known = library.get_supported_compute_types(device)
    require(
        f"quantization must be None or what this machine's {device} computes "
        f"in: {', '.join(sorted(known))}",
        quantization is None or quantization in known,
        quantization=quantization,
    )
    indices = [*range(most if devices == "all" else count)]
    cores = hardware.num_cores()
    side_by_side = 1 if num_gpus else hardware.cpu_parts(cores)
    return Workers(
        device,
        indices,
        side_by_side,
        max(1, cores // side_by_side),
        quantization or "default",  # What the weights are kept in.
    )


class _Conversion:
    """A checkpoint of a model directory as a folder for CTranslate2.

    Args:
        directory: ModelDirectory.
        hparams: its own, with the max_extra_length of the search.
        vocabulary: Vocabulary.
        which: (checkpoint, average_last), those of `open_translator`.
        quantization: that of `open_translator`.
    """

    def __init__(
        self,
        directory: ModelDirectory,
        hparams: HParams,
        vocabulary: Vocabulary,
        which: tuple[str, int],
        quantization: str | None,
    ):
        self.hparams, self.vocabulary = hparams, vocabulary
        self._directory, self._which = directory, which
        self._quantization = quantization
        paths = _checkpoint_paths(directory, *which)
        self.description = _description(paths, which[1])
        # It has a checksum of each weight.
        indices = [files.to_path(f"{path}.index") for path in paths]
        self._sources = _hashes(directory.path, indices)
        self.name = f"{self._hash()[:16]}-{quantization or 'float32'}"

    def _hash(self) -> str:
        """Returns the hash of all that what is written depends on."""
        architecture = {
            name: value
            for name, value in dataclasses.asdict(self.hparams).items()
            if name not in MAY_CHANGE
        }
        parts = [
            _FORMAT_VERSION,
            self._sources,
            self._which[1],
            architecture,
            ctranslate2.num_positions(self.hparams),
            self.vocabulary.sha256,
        ]
        return hashlib.sha256(json.dumps(parts).encode()).hexdigest()

    @contextlib.contextmanager
    def folder(self) -> Iterator[pathlib.Path]:
        """Gives the folder, which is written if there is none.

        One that cannot be kept is there until it is left.
        """
        kept = self._directory.path / _FOLDER / self.name
        if not self._is_written(kept):
            description, weights = self._directory.weights(*self._which)
            # Where a checkpoint is damaged, it is that of the one before.
            is_right = description == self.description
            if not is_right:
                self.description = description
                self.name += f"-{os.path.basename(description)}"
            if not (is_right and self._keep(kept, weights)):
                with tempfile.TemporaryDirectory() as temporary:
                    folder = pathlib.Path(temporary, "model")
                    self._write(folder, weights)
                    yield folder
                return
        yield kept

    def _is_written(self, folder: pathlib.Path) -> bool:
        return bool(self._sources) and (folder / ctranslate2.METADATA).exists()

    def _keep(
        self, folder: pathlib.Path, weights: dict[str, np.ndarray]
    ) -> bool:
        """Returns whether the folder is there now."""
        try:
            self._write(folder, weights)
        except InputError as error:
            if self._is_written(folder):  # By another process.
                return True
            logging.warning("The converted model is not kept: %s", error)
            return False
        logging.info("Converted %s to %s.", self.description, folder)
        _remove_stale(self._directory.path, folder.parent)
        return True

    def _write(
        self, folder: pathlib.Path, weights: dict[str, np.ndarray]
    ) -> None:
        ctranslate2.write(
            PortableModel(
                self.hparams,
                weights,
                self.vocabulary,
                self._directory.settings().splitting()._asdict(),
            ),
            folder,
            quantization=self._quantization,
            metadata={
                "checkpoint": self.description,
                "format_version": _FORMAT_VERSION,
                _SOURCES: self._sources,
            },
        )


def _checkpoint_paths(
    directory: ModelDirectory, which: str, average_last: int
) -> list[files.Path]:
    """Returns the checkpoints that `weights` reads, newest first.

    They are those that are there, undamaged or not; none where there is none.
    """
    folders = {
        "last": directory.checkpoints,
        "best": directory.best,
        "averaged": directory.averaged,
    }
    if which in folders:
        newest = checkpoints.paths(folders[which])[::-1]
        return newest[: max(1, average_last)]
    path = files.to_path(os.fspath(which).removesuffix(".index"))
    return [path] if checkpoints.exists(path) else []


def _description(paths: list[files.Path], average_last: int) -> str:
    """Returns what `ModelDirectory.weights` says of these checkpoints."""
    if average_last > 1:
        return f"average of {', '.join(path.name for path in paths)}"
    return str(paths[0]) if paths else ""


def _hashes(
    root: files.Path, paths: Iterable[files.Path]
) -> dict[str, str | None]:
    """Returns the hash of each file, by its path from a folder.

    A file that is not there has None.
    """
    return {
        os.path.relpath(path, root): (
            hashlib.sha256(path.read_bytes()).hexdigest()
            if path.exists()
            else None
        )
        for path in paths
    }


def _remove_stale(model_dir: files.Path, folder: files.Path) -> None:
    """Removes what was converted from checkpoints that are not there now."""
    for metadata_path in folder.glob(f"*/{ctranslate2.METADATA}"):
        with contextlib.suppress(OSError, ValueError, TypeError, LookupError):
            metadata = files.read_json(metadata_path)
            sources = metadata[_SOURCES]
            paths = [model_dir / name for name in sources]
            is_fresh = _hashes(model_dir, paths) == sources
            if not is_fresh or metadata["format_version"] != _FORMAT_VERSION:
                shutil.rmtree(metadata_path.parent)


class _Found(NamedTuple):
    """A hypothesis."""

    ids: list[int]  # with EOS, if it has ended
    log_prob: float

    @property
    def has_ended(self) -> bool:
        """Whether EOS is its last token."""
        return self.ids[-1:] == [EOS]


class CTranslate2Search:
    """Translates any number of id sequences, as `ids_translator` does.

    Args:
        library: ctranslate2.Translator.
        vocabulary: Vocabulary, of both sides.
        hparams: HParams of the model.
        options: SearchOptions.
    """

    def __init__(
        self,
        library: Any,
        vocabulary: Vocabulary,
        hparams: HParams,
        options: SearchOptions,
    ):
        self._library, self._options = library, options
        self._source_names = ctranslate2.token_names(vocabulary)
        targets = ctranslate2.token_names(vocabulary.target)
        self._target_ids = {name: n for n, name in enumerate(targets, EOS)}
        steering.piece_ids(options.suppress_pieces, vocabulary.target)
        self._target_vocabulary = vocabulary.target
        self._target_names = targets
        self._most = ctranslate2.num_positions(hparams)
        whole = shapes.capacity(
            hardware.find_hardware(), options.beam_width, options.tokens_at_once
        )
        self._tokens_per_batch = max(1, whole.tokens // whole.num_parts)
        # Of one translation without a penalty, no other needs to be known.
        is_plain = options.nbest == 1 and options.length_penalty == 0
        self._num_hypotheses = 1 if is_plain else options.beam_width

    def __call__(self, ids: "tf.RaggedTensor") -> Hypotheses:
        """Returns the `nbest` Hypotheses of each sequence, NumPy arrays.

        Args:
            ids: int32 RaggedTensor [N, (length)], EOS at each end. One that has
                nothing else gets no ids, and the scores 0, -inf, -inf, ...
        """
        return self._hypotheses(self.search(ids.to_list()))

    def _hypotheses(self, found: list[list["_Found"]]) -> Hypotheses:
        """Returns what was found as arrays."""
        N, W = len(found), self._options.nbest
        T = max((len(f.ids) for each in found for f in each), default=0)
        ids_NWT = np.zeros([N, W, T], np.int32)
        scores_NW = np.full([N, W], -np.inf, np.float32)
        for n, hypotheses in enumerate(found):
            for w, hypothesis in enumerate(hypotheses):
                ids_NWT[n, w, : len(hypothesis.ids)] = hypothesis.ids
                scores_NW[n, w] = self._score(hypothesis)
        return Hypotheses(ids_NWT, scores_NW)

    def translate_prefixed(
        self,
        ids: "tf.RaggedTensor",
        prefixes: Sequence[str],
        ends_there: Sequence[bool],
    ) -> Hypotheses:
        """Returns the Hypotheses of sequences that begin with prefixes.

        The tokens of a prefix are those of the vocabulary for it alone, so a
        word that it cuts goes on with another token.

        Args:
            ids: that of a call.
            prefixes: str, one for each sequence.
            ends_there: whether a prefix is all of the translation.
        """
        sources = ids.to_list()
        begun = self._target_vocabulary.encode([p.rstrip() for p in prefixes])
        scores = self._scores(sources, begun)
        found = self.search(
            # What is known already needs no search.
            [
                [] if ends else source_ids
                for source_ids, ends in zip(sources, ends_there, strict=True)
            ],
            [begun_ids[:-1] for begun_ids in begun],
        )
        for n, log_probs in enumerate(scores):
            if ends_there[n]:
                found[n] = [_Found(begun[n], sum(log_probs))]
            elif not self._options.steering:
                # The library leaves the prefix out of a score.
                of_prefix = sum(log_probs[:-1])
                found[n] = [
                    h._replace(log_prob=h.log_prob + of_prefix)
                    for h in found[n]
                ]
        return self._hypotheses(found)

    def _scores(
        self, sources: list[list[int]], targets: list[list[int]]
    ) -> list[list[float]]:
        """Returns the log probability of each token of targets, with EOS.

        Args:
            sources: lists of ids, EOS at each end.
            targets: lists of ids, EOS at each end.
        """
        found = self._library.score_batch(
            [self._named(self._source_names, ids) for ids in sources],
            [self._named(self._target_names, ids) for ids in targets],
            max_batch_size=self._tokens_per_batch,
            batch_type="tokens",
            max_input_length=0,
        )
        return [each.log_probs for each in found]

    def _named(self, names: list[str], ids: list[int]) -> list[str]:
        """Returns the library's names of ids, without EOS."""
        return [names[i - EOS] for i in ids[:-1]]

    def search(
        self,
        sources: list[list[int]],
        begun: list[list[int]] | None = None,
    ) -> list[list[_Found]]:
        """Returns the best hypotheses of each source, best first.

        CTranslate2 takes one largest length for a whole batch. It cuts off what
        is about as long as the longest sources allow, and changes nothing for a
        sentence all of whose hypotheses end within its own limit. The few
        others are searched again, together with those of the same limit.

        Args:
            sources: lists of ids, EOS at each end.
            begun: the ids that each one's hypotheses begin with, which their
                scores leave out; None for none.
        """
        begun = begun or [[]] * len(sources)
        found = [[_Found([], 0.0)] for _ in sources]
        rows = [n for n, ids in enumerate(sources) if ids not in ([], [EOS])]
        for n, hypotheses in self._run(
            sources, begun, self._batches(sources, rows)
        ):
            found[n] = hypotheses
        again = [n for n in rows if not self._is_final(found[n], sources[n])]
        lengths = sorted({len(sources[n]) for n in again})
        batches = [
            batch
            for length in lengths
            for batch in self._batches(
                sources, [n for n in again if len(sources[n]) == length]
            )
        ]
        for n, hypotheses in self._run(
            sources, begun, batches, to_the_end=True
        ):
            found[n] = hypotheses
        if self._options.steering:
            found = self._rescored(sources, found)
        return [each[: self._options.nbest] for each in found]

    def _rescored(
        self, sources: list[list[int]], found: list[list[_Found]]
    ) -> list[list[_Found]]:
        """Returns hypotheses with the model's scores, best first.

        What steers the library's search shares the probability of what it
        leaves out among the rest.
        """
        pairs = [
            (n, hypothesis)
            for n, hypotheses in enumerate(found)
            for hypothesis in hypotheses
            if hypothesis.has_ended
        ]
        scores = self._scores(
            [sources[n] for n, _ in pairs], [h.ids for _, h in pairs]
        )
        rescored = [[h for h in each if not h.has_ended] for each in found]
        for (n, hypothesis), log_probs in zip(pairs, scores, strict=True):
            rescored[n].append(hypothesis._replace(log_prob=sum(log_probs)))
        return [sorted(each, key=self._rank) for each in rescored]

    def _rank(self, hypothesis: _Found) -> tuple[bool, float]:
        """Returns what sorts hypotheses; what has not ended is last."""
        return not hypothesis.has_ended, -self._score(hypothesis)

    def _limit(self, source: list[int]) -> int:
        """Returns the most tokens of a source's translation, with EOS."""
        return min(len(source) + self._options.max_extra_length, self._most)

    def _is_final(self, hypotheses: list[_Found], source: list[int]) -> bool:
        limit = self._limit(source)
        return all(h.has_ended and len(h.ids) <= limit for h in hypotheses)

    def _score(self, hypothesis: _Found) -> float:
        """Returns its log probability / length penalty; section 6.1."""
        alpha = self._options.length_penalty
        return hypothesis.log_prob / ((5 + len(hypothesis.ids)) / 6) ** alpha

    def _batches(
        self, sources: list[list[int]], rows: list[int]
    ) -> Iterator[list[int]]:
        """Yields the rows of each batch, those of long sources first."""
        num_tokens = sum(len(sources[n]) for n in rows)
        # No worker is to wait for another.
        share = -(-num_tokens // self._library.num_translators)
        most_tokens = min(self._tokens_per_batch, share)
        batch = []
        for n in sorted(rows, key=lambda n: -len(sources[n])):
            width = len(sources[batch[0]]) if batch else 0
            if batch and width * (len(batch) + 1) > most_tokens:
                yield batch
                batch = []
            batch.append(n)
        if batch:
            yield batch

    def _run(
        self,
        sources: list[list[int]],
        begun: list[list[int]],
        batches: Iterable[list[int]],
        to_the_end: bool = False,
    ) -> Iterator[tuple[int, list[_Found]]]:
        """Yields (row, hypotheses, best first) of each source in batches.

        Args:
            sources: lists of ids.
            begun: that of `search`.
            batches: lists of rows, each searched at once.
            to_the_end: whether searches go on to their largest length, and
                give all that has ended until then.
        """
        started = [
            (
                batch,
                self._start(
                    [sources[n] for n in batch],
                    [begun[n] for n in batch],
                    to_the_end,
                ),
            )
            for batch in batches
        ]
        for batch, results in started:
            for n, result in zip(batch, results, strict=True):
                yield n, self._ranked(result.result())

    def _start(
        self,
        sources: list[list[int]],
        begun: list[list[int]],
        to_the_end: bool,
    ) -> list[Any]:
        """Returns the results to come of a batch."""
        limit = max(map(self._limit, sources))
        beam_width = self._options.beam_width
        patience = limit + 1 if to_the_end and beam_width > 1 else 1
        options = self._options
        names = self._target_names
        return self._library.translate_batch(
            [self._named(self._source_names, ids) for ids in sources],
            target_prefix=[[names[i - EOS] for i in ids] for ids in begun],
            asynchronous=True,
            beam_size=beam_width,
            patience=patience,
            num_hypotheses=(
                patience * beam_width if patience > 1 else self._num_hypotheses
            ),
            length_penalty=0,
            min_decoding_length=min(options.min_length, limit - 1),
            no_repeat_ngram_size=options.no_repeat_ngram_size,
            suppress_sequences=[[p] for p in options.suppress_pieces] or None,
            max_decoding_length=limit,
            max_input_length=0,
            return_scores=True,
            return_end_token=True,
        )

    def _ranked(self, result: Any) -> list[_Found]:
        """Returns what was found, best first; what has not ended is last."""
        found = [
            _Found([self._target_ids[token] for token in tokens], score)
            for tokens, score in zip(
                result.hypotheses, result.scores, strict=True
            )
        ]
        return sorted(found, key=self._rank)
