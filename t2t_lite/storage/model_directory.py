"""The model directory: all that a later command needs to know about a run.

settings.json          the resolved hparams, the corpus and its hashes
vocabulary.model       the SentencePiece model; source.model and target.model,
                       if each side has its own
tokens/                the training corpus as token ids, unless in a cache
checkpoints/step-N.*   the last ones, N updates into training
best/step-N.*          the one that scores best on dev
averaged/step-N.*      written by bin/average_checkpoints
summaries/             for TensorBoard
train.log              what the run has logged, also before it was resumed
ctranslate2/           the converted model, if CTranslate2 has been used
divergence-step-N-batch-M.json  an update that diverged
scores.json            the final scores: BLEU, chrF, perplexity and checks
training.png           the curves of the run, if matplotlib is installed
lock                   exists while a run is active

A task may keep its own files beside these.
"""

import contextlib
import dataclasses
import itertools
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from types import NoneType
from typing import Any, NamedTuple

import keras
import numpy as np

from t2t_lite import files, hparams
from t2t_lite.errors import InputError, require, require_path
from t2t_lite.hardware import PRECISIONS, SEARCH_PRECISIONS
from t2t_lite.model.flops import num_parameters
from t2t_lite.model.transformer import Transformer
from t2t_lite.storage import (
    checkpoint_files,
    checkpoints,
    origin,
    settings_file,
)
from t2t_lite.text import vocabulary
from t2t_lite.text.sentences import Splitting
from t2t_lite.text.vocabulary import Vocabulary

_MODEL = "transformer/"  # Prefix of the names of the model's tensors.
_FAR_TOO_MANY = 4  # Times as many weights as a checkpoint has.
_FEW = 0.01  # A smaller share of multi-sentence lines is an accident.
_RECORD = ("step", "training_flops", "device_seconds")  # Training so far.
# What a killed run may have half-written; version 0.1.0 wrote settings.tmp.
_WRITTEN = (
    "settings.json",
    "settings",
    "scores.json",
    "training.png",
    "vocabulary.model",
    "source.model",
    "target.model",
    "tokens",
    "tags.npz",
    "preflight",
    "divergence",
)


@dataclasses.dataclass(frozen=True)
class Settings:
    """What a run was started with."""

    hparams: hparams.HParams
    corpus: dict  # the flags that name the corpus
    data_sha256: str  # of the training text
    vocabulary_sha256: str
    vocabulary_size: int
    micro_batch_tokens: int
    source_language: str | None = None  # ISO 639-1
    multi_sentence_share: float | None = None  # of the training sources
    long_line_tokens: int | None = None  # the 99th percentile of the sources
    vocabulary_is_learned: bool | None = None  # from this text; None: not known
    # Of the corpora of the training text; None: all pairs count the same.
    corpus_weights: list | None = None
    # If targets have their own vocabulary.
    target_vocabulary_size: int | None = None
    # Whether lines may begin with a token such as >>deu<<.
    language_tokens: bool = False
    # [layer, head, reads] of the attention that aligns words, as in
    # model.alignment_head.AlignmentHead; None: the mean of the last layer's.
    alignment_head: list | None = None
    precision: str | None = None  # of the run's computation; None: not known

    def __post_init__(self) -> None:
        for field in dataclasses.fields(self):
            value = getattr(self, field.name)
            if not isinstance(value, field.type):
                kind = getattr(field.type, "__name__", field.type)
                raise TypeError(
                    f"{field.name} must be of type {kind}; received "
                    f"{field.name}={value!r}"
                )
        sizes = (self.vocabulary_size, self.micro_batch_tokens)
        if min(sizes) < 1:
            raise TypeError(
                "vocabulary_size and micro_batch_tokens must be at least 1; "
                f"received {sizes}"
            )
        weights = self.corpus_weights or []
        if not all(isinstance(w, float) and w > 0 for w in weights):
            raise TypeError(
                "corpus_weights must be numbers above 0; received "
                f"corpus_weights={weights!r}"
            )
        if self.long_line_tokens is not None and self.long_line_tokens < 1:
            raise TypeError(
                "long_line_tokens must be at least 1; received "
                f"long_line_tokens={self.long_line_tokens}"
            )
        _check_head(self.alignment_head, self.hparams)
        share = self.multi_sentence_share
        if share is not None and not 0 <= share <= 1:
            raise TypeError(
                "multi_sentence_share must be from 0 to 1; received "
                f"multi_sentence_share={share}"
            )

    def splitting(self, sentences: str = "auto") -> Splitting:
        """Returns which lines the model takes as single sentences.

        Args:
            sentences: "auto", "split" or "whole", as for a Translator. A run
                that kept no figures counts as trained on single sentences.
        """
        is_single = (self.multi_sentence_share or 0) < _FEW
        trained_for = Splitting(
            self.source_language,
            whole_up_to=0 if is_single else self.long_line_tokens or 0,
            language_tokens=self.language_tokens,
        )
        return trained_for.override(sentences, self.hparams.max_length)


def _check_head(found: list | None, model: hparams.HParams) -> None:
    """Raises TypeError if a model has no such layer or head."""
    if found is None:
        return
    layers, heads = range(model.decoder_layers), range(model.num_heads)
    kinds = [type(value) for value in found]
    is_head = len(kinds) == 3 and kinds[0] is int and kinds[2] is bool
    is_head = is_head and kinds[1] in (int, NoneType)
    if not is_head or found[0] not in layers or found[1] not in (None, *heads):
        raise TypeError(
            "alignment_head must be a layer of the decoder, one of its heads "
            f"or null, and a bool; received alignment_head={found!r}"
        )


class LoadedModel(NamedTuple):
    """A model and where its weights come from, both from the same read."""

    model: Transformer
    description: str  # of the checkpoint
    # How much training it took: those of "step", "training_flops" and
    # "device_seconds" that the checkpoint holds. An average of the last
    # checkpoints took all the training up to the last one.
    training_record: dict[str, float]


class ModelDirectory:
    """The files of one run, by name.

    Args:
        path: the directory, which need not exist.
    """

    def __init__(self, path: str | os.PathLike):
        require_path(model_dir=path)
        self.path = files.to_path(path)
        checkpoints.require_no_glob_characters(self.path)
        self.settings_path = self.path / settings_file.NAME
        self.tokens = self.path / "tokens"
        self.checkpoints = self.path / "checkpoints"
        self.best = self.path / "best"
        self.averaged = self.path / "averaged"
        self.summaries = self.path / "summaries"
        self.log = self.path / "train.log"
        self.scores = self.path / "scores.json"
        self.training_picture = self.path / "training.png"
        self._locked_folder: int | None = None  # its descriptor

    def divergence(self, step: int, batch: int) -> files.Path:
        """Returns the path of the record of an update that diverged.

        Args:
            step: number of the update.
            batch: number of its batch; differs from `step` after skips.
        """
        return self.path / f"divergence-step-{step}-batch-{batch}.json"

    @contextlib.contextmanager
    def locked(self) -> Iterator[None]:
        """Keeps other runs out of the directory within the context.

        The lock ends with the process, however that ends. Remote directories
        have no locks.

        Raises:
            InputError: another process holds the lock.
        """
        if files.is_remote(self.path):
            self._remove_leftovers()
            yield
            return
        self.path.mkdir(parents=True, exist_ok=True)
        refusal = (
            f"another run is using {self.path}: wait for it to finish, or give "
            "another --model_dir"
        )
        lock = self.path / "lock"
        if lock.is_dir():
            raise InputError(f"{lock} must be a file: remove that folder")
        with (
            # Version 0.1.0 locks the folder, which has no effect on NFS.
            files.locked(self.path, refusal) as self._locked_folder,
            files.locked(lock, refusal),
        ):
            self._remove_leftovers()
            try:
                yield
            finally:
                if self._is_in_place():
                    lock.unlink(missing_ok=True)
                    with contextlib.suppress(OSError):  # It is not empty.
                        self.path.rmdir()
                self._locked_folder = None

    def _remove_leftovers(self):
        # Only these: another program may be writing its output here.
        for name in _WRITTEN:
            files.remove_leftovers(self.path, name)

    def _is_in_place(self):
        return files.is_in_place(self._locked_folder, self.path)

    def require_in_place(self) -> None:
        """Refuses to continue if the locked directory was moved or removed.

        Raises:
            InputError: it was; a new one must not take its place.
        """
        if self._locked_folder is not None and not self._is_in_place():
            raise InputError(
                f"{self.path} was moved or removed during the run: run the "
                "same command again with its new path as --model_dir, to "
                "resume from the last checkpoint"
            )

    def settings(self) -> Settings:
        """Returns the Settings of the run.

        Raises:
            InputError: the directory holds no run.
        """
        values = settings_file.read(self.path)
        try:
            hparams.require_fields(Settings, values)
            return Settings(**values)
        except (InputError, TypeError) as error:
            raise InputError(
                f"{self.settings_path} cannot be used: {error}"
            ) from None

    def require_task(self, name: str) -> None:
        """Raises InputError if the model was trained for another task."""
        settings_file.require_task(self.path, name)

    def save_settings(self, settings: Settings) -> None:
        """Writes settings.json atomically, with a checksum."""
        settings_file.write(self.path, dataclasses.asdict(settings))

    def vocabulary(self) -> Vocabulary:
        """Returns the run's Vocabulary.

        Raises:
            InputError: it cannot be read, or does not match the settings.
        """
        found = self.unchecked_vocabulary()
        if self.settings_path.exists():
            expected = self.settings().vocabulary_sha256
            if found.sha256 != expected:
                names = " and ".join(found.sides())
                raise InputError(
                    f"{self.path / names} is not the vocabulary of this "
                    "model: put back the file whose SHA-256 begins with "
                    f"{expected[:12]}; received {found.sha256[:12]}"
                )
        return found

    def unchecked_vocabulary(self) -> Vocabulary:
        """Returns the Vocabulary in the directory, whatever the settings say.

        Raises:
            InputError: it cannot be read.
        """
        return Vocabulary.load_from(self.path)

    def has_vocabulary(self) -> bool:
        """Returns whether the directory has the files of a vocabulary."""
        names = (vocabulary.FILE, vocabulary.SOURCE_FILE)
        return any(files.exists(self.path / name) for name in names)

    def weights(
        self, which: str = "last", average_last: int = 1
    ) -> tuple[str, dict[str, np.ndarray]]:
        """Returns (description, tensors): the model's weights by name.

        Args:
            which: "last", "best", "averaged", or the path of a checkpoint.
            average_last: int; above 1, the mean of that many of the last ones.

        Raises:
            InputError: there is no such checkpoint, or too few; or the
                weights are not finite.
        """
        description, tensors = self._read(which, average_last)
        return description, _some(tensors, is_weight)

    def _read(self, which, average_last):
        """Returns (description, tensors): the weights, and their record."""
        checkpoint_files.require(self.path, which, average_last)
        if average_last > 1:
            paths, tensors = self._average(average_last)
            description = f"average of {', '.join(p.name for p in paths)}"
        else:
            description, tensors = self._read_one(which)
            self._require_own(description, tensors)
        return description, tensors

    def _require_own(self, description, tensors):
        """Raises InputError if the weights are not those of this model."""
        if origin.NAME in tensors and self.settings_path.exists():
            settings = self.settings()
            origin.require(
                tensors,
                settings.hparams,
                settings.vocabulary_sha256,
                description=description,
            )
        _require_finite(description, _some(tensors, is_weight))

    def _own_weights(self, path, tensors):
        """Returns the weights among a checkpoint's tensors, once checked."""
        self._require_own(str(path), tensors)
        return _some(tensors, is_weight)

    def _read_one(self, which):
        if which not in checkpoint_files.FOLDERS:
            path = os.fspath(which).removesuffix(checkpoint_files.INDEX)
            return path, checkpoints.read(path, _is_kept)
        folder = self.path / checkpoint_files.FOLDERS[which]
        found = list(itertools.islice(checkpoints.newest(folder, _is_kept), 1))
        checkpoint_files.require_enough(self.path, len(found), which)
        ((path, tensors),) = found
        return str(path), tensors

    def _average(self, count):
        """Returns (paths, tensors): mean weights; the rest is the newest's."""
        newest = checkpoints.newest(self.checkpoints, _is_kept)
        first = list(itertools.islice(newest, 1))
        paths, means = checkpoints.average(
            (
                (path, self._own_weights(path, tensors))
                for path, tensors in itertools.chain(first, newest)
            ),
            count,
        )
        checkpoint_files.require_enough(
            self.path, len(paths), average_last=count
        )
        ((_, tensors),) = first
        return paths, tensors | means

    def write_average(
        self, count: int | None = None
    ) -> tuple[files.Path, list[files.Path]]:
        """Writes the average of the last checkpoints into averaged/.

        Args:
            count: int, how many; None for as many as the hparams say.

        Returns:
            the path of the average, and the list of those averaged.

        Raises:
            InputError: there are fewer, or the average cannot be written.
        """
        count = count or self.settings().hparams.average_last
        paths, tensors = self._average(count)
        _require_finite(
            f"the average of {paths[0]} and others", _some(tensors, is_weight)
        )
        path = self.averaged / paths[0].name
        checkpoints.write(path, tensors)
        checkpoints.prune(self.averaged, 1, path)
        return path, paths

    def load_model(
        self,
        which: str = "last",
        average_last: int = 1,
        precision: str = "float32",
        num_target_ids: int | None = None,
    ) -> LoadedModel:
        """Returns the LoadedModel of a checkpoint.

        Args:
            which: that of `weights`.
            average_last: that of `weights`.
            precision: "float32", "bfloat16" or "float16"; or "int8" for a
                search that XLA compiles.
            num_target_ids: int, that of the task; all ids of the target
                vocabulary if not given.

        Raises:
            InputError: no such checkpoint, or not one of this model.
        """
        policy = search_policy(precision)
        settings = self.settings()
        description, tensors = self._read(which, average_last)
        record = _some(tensors, is_record)
        checkpoints.require_numbers(record, _RECORD, description)
        weights = _some(tensors, is_weight)
        _require_no_more_weights(settings, weights, description)
        model = Transformer(
            settings.hparams,
            vocabulary_size=settings.vocabulary_size,
            num_target_ids=num_target_ids or settings.target_vocabulary_size,
            dtype=policy,
        )
        model.build()
        assign(model.trainable_variables, weights, description)
        if precision == "int8":
            model.search_in_int8()
        return LoadedModel(
            model, description, {n: t.item() for n, t in record.items()}
        )


def read_weights(
    path: str | os.PathLike,
) -> tuple[str, dict[str, np.ndarray]]:
    """Returns (description, tensors): the weights in a checkpoint, by name.

    With them comes the record of which model they belong to (`origin`).

    Args:
        path: of the checkpoint, or of its index.

    Raises:
        InputError: there is no checkpoint, or its weights are not finite.
    """
    path = os.fspath(path).removesuffix(checkpoint_files.INDEX)
    tensors = checkpoints.read(path, _is_weight_or_origin)
    _require_finite(path, _some(tensors, is_weight))
    return path, tensors


def _require_no_more_weights(settings, weights, description):
    """Raises InputError before a far too large model is given memory."""
    expected = num_parameters(
        settings.hparams,
        settings.vocabulary_size,
        settings.target_vocabulary_size,
    )
    received = sum(weight.size for weight in weights.values())
    # Otherwise, `assign` says which ones differ.
    if expected > _FAR_TOO_MANY * received:
        raise InputError(
            f"{description} does not fit this model: the settings call for "
            f"{expected:,} weights; received {received:,}"
        )


def _require_finite(description, tensors):
    """Raises InputError if a model could only produce nonsense."""
    for name, value in tensors.items():
        value = np.asarray(value)
        if value.dtype.kind not in "fiuV":  # V: bfloat16
            raise InputError(
                f"the weights of {description} must be real numbers; "
                f"{name} is {value.dtype}: choose another checkpoint"
            )
        if not np.isfinite(value).all():
            raise InputError(
                f"the weights of {description} are not finite, such as {name}: "
                "choose another checkpoint"
            )


def training_policy(precision: str) -> str:
    """Returns the Keras dtype policy of a model in training.

    Its weights are float32.

    Args:
        precision: "float32", "bfloat16" or "float16".

    Raises:
        InputError: it is none of these.
    """
    _require_precision(precision, PRECISIONS)
    return precision if precision == "float32" else f"mixed_{precision}"


def search_policy(precision: str) -> str:
    """Returns the Keras dtype policy of a model whose weights are fixed.

    They are rounded once, when they are loaded, rather than in each step of a
    search; the result is the same.

    Args:
        precision: "float32", "bfloat16" or "float16"; or "int8", by which only
            the steps of a search compute (`Transformer.search_in_int8`).

    Raises:
        InputError: it is none of these.
    """
    _require_precision(precision, SEARCH_PRECISIONS)
    return "float32" if precision == "int8" else precision


def _require_precision(precision: str, known: Sequence[str]) -> None:
    *others, last = known
    require(
        f"precision must be {', '.join(others)} or {last}",
        precision in known,
        precision=precision,
    )


def is_weight(name: str) -> bool:
    """Returns whether a checkpoint's tensor is one of the model's weights."""
    return name.startswith(_MODEL)


def is_record(name: str) -> bool:
    """Returns whether a checkpoint's tensor says how much training it took."""
    return name in _RECORD


def _is_weight_or_origin(name):
    return is_weight(name) or name == origin.NAME


def _is_kept(name):
    return _is_weight_or_origin(name) or is_record(name)


def _some(tensors, is_wanted):
    return {n: tensor for n, tensor in tensors.items() if is_wanted(n)}


def named_tensors(variables: Iterable[keras.Variable]) -> dict[str, Any]:
    """Returns Keras variables' values under their names in a checkpoint."""
    return {variable.path: variable.value for variable in variables}


def assign(
    variables: Sequence[keras.Variable],
    tensors: Mapping[str, np.ndarray],
    description: str,
) -> None:
    """Assigns a checkpoint's values to Keras variables.

    Args:
        variables: list of keras.Variable.
        tensors: dict of names to arrays.
        description: str, of the checkpoint, for the message.

    Raises:
        InputError: a variable is missing, or has a different shape; or there
            are weights that belong to no variable, such as an extra layer's.
    """
    for variable in variables:
        value = tensors.get(variable.path)
        if value is None or tuple(value.shape) != tuple(variable.shape):
            received = "nothing" if value is None else list(value.shape)
            raise InputError(
                f"{description} does not fit this model: {variable.path} must "
                f"be {list(variable.shape)}; received {received}"
            )
    paths = {variable.path for variable in variables}
    for name, value in tensors.items():
        if is_weight(name) and name not in paths:
            raise InputError(
                f"{description} does not fit this model, which has no {name}; "
                f"received {list(value.shape)}"
            )
    for variable in variables:
        variable.assign(tensors[variable.path])
