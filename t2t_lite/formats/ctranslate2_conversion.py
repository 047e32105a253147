"""Checkpoints of a model directory as folders for CTranslate2.

Each is converted once for each quantization. The result is kept in
<model_dir>/ctranslate2/<name>-<quantization>/. Its name is made from a hash of
the checkpoint, so other weights never pass for these; what was converted from a
checkpoint that is gone is removed when another is converted.
"""

import contextlib
import dataclasses
import hashlib
import json
import os
import pathlib
import shutil
import tempfile
from collections.abc import Iterable, Iterator

import numpy as np
from absl import logging

from t2t_lite import files
from t2t_lite.errors import InputError
from t2t_lite.formats import ctranslate2
from t2t_lite.formats.portable import PortableModel
from t2t_lite.hparams import MAY_CHANGE, HParams
from t2t_lite.storage import checkpoint_files
from t2t_lite.storage.model_directory import ModelDirectory
from t2t_lite.text.vocabulary import Vocabulary

# Raised whenever the same checkpoint is written differently than before.
_FORMAT_VERSION = 1
_FOLDER = "ctranslate2"  # Of a model directory.
_SOURCES = "source_files"  # In metadata.json: hashes of what was converted.


class Conversion:
    """A checkpoint of a model directory as a folder for CTranslate2.

    Args:
        directory: ModelDirectory.
        hparams: its own, with the max_extra_length of the search.
        vocabulary: Vocabulary.
        checkpoint: as for `ModelDirectory.weights`.
        average_last: as for `ModelDirectory.weights`.
        quantization: as for `ctranslate2.write`.
    """

    def __init__(
        self,
        *,
        directory: ModelDirectory,
        hparams: HParams,
        vocabulary: Vocabulary,
        checkpoint: str,
        average_last: int,
        quantization: str | None,
    ):
        self.hparams, self.vocabulary = hparams, vocabulary
        self._directory, self._quantization = directory, quantization
        self._checkpoint, self._average_last = checkpoint, average_last
        paths = checkpoint_files.requested_paths(
            directory.path, checkpoint, average_last
        )
        self.description = _description(paths, average_last)
        # An index has a checksum of each weight.
        indices = [files.to_path(f"{path}.index") for path in paths]
        self._sources = _hashes(directory.path, indices)
        self.name = f"{self._hash()[:16]}-{quantization or 'float32'}"

    def _hash(self) -> str:
        """Returns the hash of everything that the written folder depends on."""
        architecture = {
            name: value
            for name, value in dataclasses.asdict(self.hparams).items()
            if name not in MAY_CHANGE
        }
        parts = [
            _FORMAT_VERSION,
            self._sources,
            self._average_last,
            architecture,
            ctranslate2.num_positions(self.hparams),
            self.vocabulary.sha256,
        ]
        return hashlib.sha256(json.dumps(parts).encode()).hexdigest()

    @contextlib.contextmanager
    def folder(self) -> Iterator[pathlib.Path]:
        """Yields the folder, which is written if there is none.

        A folder that cannot be kept exists until the context ends.
        """
        kept = self._directory.path / _FOLDER / self.name
        if not self._is_written(kept):
            description, weights = self._directory.weights(
                self._checkpoint, self._average_last
            )
            # If a checkpoint is damaged, it is that of the one before.
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
        """Returns whether the folder exists now."""
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
                hparams=self.hparams,
                weights=weights,
                vocabulary=self.vocabulary,
                splitting=self._directory.settings().splitting()._asdict(),
            ),
            folder,
            quantization=self._quantization,
            metadata={
                "checkpoint": self.description,
                "format_version": _FORMAT_VERSION,
                _SOURCES: self._sources,
            },
        )


def _description(paths: list[files.Path], average_last: int) -> str:
    """Returns what `ModelDirectory.weights` says of these checkpoints."""
    if average_last > 1:
        return f"average of {', '.join(path.name for path in paths)}"
    return str(paths[0]) if paths else ""


def _hashes(
    root: files.Path, paths: Iterable[files.Path]
) -> dict[str, str | None]:
    """Returns the hash of each file, by its path relative to a folder.

    A missing file has None.
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
    """Removes what was converted from checkpoints that no longer exist."""
    for metadata_path in folder.glob(f"*/{ctranslate2.METADATA}"):
        with contextlib.suppress(OSError, ValueError, TypeError, LookupError):
            metadata = files.read_json(metadata_path)
            sources = metadata[_SOURCES]
            paths = [model_dir / name for name in sources]
            is_fresh = _hashes(model_dir, paths) == sources
            if not is_fresh or metadata["format_version"] != _FORMAT_VERSION:
                shutil.rmtree(metadata_path.parent)
