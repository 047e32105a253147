"""Marian's models, such as those of OPUS-MT, as models of this package.

A model of Marian is a folder, or an archive (.zip, .tar.gz) of one, with

decoder.yml     which files are the model and its vocabularies; or
                NAME.npz.decoder.yml, as Marian's training writes it
NAME.npz        the arrays, and the model's options as special:model.yml
NAME.spm        a vocabulary: a SentencePiece model whose ids are the model's;
vocab.yml       or a map of pieces to ids, with the SentencePiece models
                source.spm and target.spm next to it

What this package cannot represent is refused, never approximated.
"""

import dataclasses
import math
import os
import pathlib
import re
import reprlib
import zipfile
from collections.abc import Iterable
from typing import Any

import numpy as np

from t2t_lite import files
from t2t_lite.english import counted
from t2t_lite.errors import InputError, require, require_extra
from t2t_lite.formats import (
    archives,
    marian_vocabulary,
    marian_weights,
    sentence_pieces,
)
from t2t_lite.formats.length_penalty import nearest_alpha
from t2t_lite.formats.marian_vocabulary import Side
from t2t_lite.formats.portable import PortableModel
from t2t_lite.hparams import HParams
from t2t_lite.text.vocabulary import SPACE, Vocabulary

OPTIONS = "special:model.yml"  # The array that holds the model's options.
_MOST_EXPONENT = 8


def is_marian(path: str | os.PathLike) -> bool:
    """Returns whether a path looks like a model of Marian.

    Args:
        path: of a folder with a decoder.yml, of an .npz or .yml file in one, or
            of an archive, which is not opened.
    """
    if files.is_remote(path):
        return False
    path = files.to_path(path)
    if path.is_dir():
        return any(path.glob("decoder.yml")) or any(path.glob("*.decoder.yml"))
    names = (".npz", "decoder.yml", *archives.SUFFIXES)
    return path.is_file() and path.name.lower().endswith(names)


def read(path: str | os.PathLike) -> PortableModel:
    """Returns a model of Marian as one of this package.

    Args:
        path: of a folder with a decoder.yml, of that file or its .npz, or of an
            archive of such a folder.

    Raises:
        InputError: it is damaged, or this package has no such models.
    """
    require_extra("yaml", "formats")
    if files.is_remote(path):
        raise InputError(
            f"a Marian model must be on this machine; received {path}: copy it"
        )
    path = files.to_path(path)
    if not path.exists():
        raise InputError(f"{path} does not exist: check the path")
    if path.is_file() and path.name.lower().endswith(archives.SUFFIXES):
        with files.private_folder("t2t_lite-marian") as temporary:
            folder = temporary / "unpacked"
            archives.unpack(path, folder)
            return _read(_config_path(folder, path), None)
    if path.is_dir():
        return _read(_config_path(path, path), None)
    if path.suffix == ".npz":
        beside = path.with_name(f"{path.name}.decoder.yml")
        is_there = beside.exists()
        config = beside if is_there else path.with_name("decoder.yml")
        return _read(config, path)
    return _read(path, None)


def _config_path(folder: pathlib.Path, received: pathlib.Path) -> pathlib.Path:
    """Returns the path of the one decoder.yml in a folder or below it."""
    for pattern in ("decoder.yml", "*.decoder.yml", "*/decoder.yml"):
        found = sorted(folder.glob(pattern))
        if len(found) == 1:
            return found[0]
        if found:
            names = ", ".join(path.name for path in found)
            raise InputError(
                f"{received} must have one decoder.yml; received {names}: give "
                "the path of one of them"
            )
    raise InputError(
        f"{received} has no decoder.yml: write one that names the model and "
        "its two vocabularies (models: [NAME.npz], vocabs: [SOURCE, TARGET])"
    )


def _read(
    config_path: pathlib.Path, model: pathlib.Path | None
) -> PortableModel:
    """Returns the PortableModel of a decoder.yml.

    Args:
        config_path: of the decoder.yml.
        model: path of the .npz, if it is not the one named there.
    """
    config = _load_yaml(_read_bytes(config_path), config_path.name)
    folder = config_path.parent
    if model is None:
        (name,) = _names(config, "models", count=1, where=config_path.name)
        model = _resolve(folder, name, config_path.name)
    options, arrays = _read_npz(model)
    names = _names(config, "vocabs", count=2, where=config_path.name)
    sides = [
        marian_vocabulary.read_side(
            _resolve(folder, name, config_path.name), side
        )
        for name, side in zip(names, ("source", "target"), strict=True)
    ]
    source, target = (
        side.cut(marian_weights.num_rows(arrays, name))
        for name, side in zip(("source", "target"), sides, strict=True)
    )
    hparams, weights = marian_weights.convert(
        options, arrays, source_order=source.order, target_order=target.order
    )
    vocabulary = sentence_pieces.join(source.reordered(), target.reordered())
    changes, notes = _search_settings(config)
    found = [
        *_describe(model.name, options, hparams),
        *_describe_vocabulary(
            names, source, target=target, vocabulary=vocabulary
        ),
        *_describe_text(folder, {*source.pieces, *target.pieces}),
        *notes,
    ]
    hparams = dataclasses.replace(
        hparams,
        vocabulary_size=vocabulary.target.size,
        vocabulary_type=sentence_pieces.kind_of(vocabulary.target),
        **changes,
    )
    return PortableModel(hparams, weights, vocabulary, found=tuple(found))


# The files.


def _read_bytes(path: pathlib.Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise InputError(f"cannot read {path}: {error.strerror}") from None


def _load_yaml(text: bytes, name: str) -> dict[str, Any]:
    """Returns the dict that a YAML file holds.

    Args:
        text: bytes, what the file holds.
        name: of the file, for the message.
    """
    import yaml

    try:
        values = yaml.safe_load(text)
    except (yaml.YAMLError, ValueError, RecursionError):
        values = None
    if not isinstance(values, dict):
        raise InputError(
            f"{name} must be options in YAML; this one is damaged: restore it "
            "from a backup"
        )
    return values


def _names(config: dict, key: str, count: int, where: str) -> list[str]:
    """Returns the names of files that an option of decoder.yml lists."""
    names = config.get(key)
    is_list = isinstance(names, list) and all(isinstance(n, str) for n in names)
    if not is_list or len(names) != count:
        why = {
            "models": "an ensemble cannot be imported: leave one model there",
            "vocabs": "models with more than one source cannot be imported",
        }[key]
        raise InputError(
            f"{key} in {where} must be {counted(count, 'file')}; received "
            f"{reprlib.repr(names)}: {why}"
        )
    return names


def _resolve(folder: pathlib.Path, name: str, where: str) -> pathlib.Path:
    """Returns the path of a file that decoder.yml names, in its folder.

    A path that leads elsewhere, as on the machine where the model was trained,
    stands for the file of that name.
    """
    relative = pathlib.PurePosixPath(name)
    if relative.is_absolute() or ".." in relative.parts:
        relative = pathlib.PurePosixPath(relative.name)
    for path in (folder / relative, folder / relative.name):
        if path.is_file():
            return path
    raise InputError(
        f"{where} names {name}, and there is no such file in {folder}: put it "
        "there"
    )


def _read_npz(path: pathlib.Path) -> tuple[dict, dict[str, np.ndarray]]:
    """Returns (options, arrays by name) of a model file."""
    if path.suffix == ".bin":
        raise InputError(
            f"Marian's .bin models cannot be imported; received {path.name}: "
            "give the .npz that it was made from"
        )
    try:
        with zipfile.ZipFile(path) as file:
            archives.check_zip(file, path)
        with np.load(path, allow_pickle=False) as file:
            arrays = {name: file[name] for name in file.files}
    except (
        *archives.DAMAGED,
        OSError,
        KeyError,
        MemoryError,
        ValueError,
    ) as error:
        if isinstance(error, InputError):
            raise
        if "allow_pickle" in str(error):
            raise InputError(
                f"{path.name} must hold only arrays of numbers; it has pickled "
                "objects, which are not loaded because they can run arbitrary "
                "code"
            ) from None
        raise InputError(
            f"{path.name} must be a model in NumPy's .npz format; this one is "
            "damaged or in another format: restore it from a backup"
        ) from None
    if OPTIONS not in arrays:
        raise InputError(
            f"{path.name} must hold {OPTIONS}, the options of the model, as "
            "Marian writes them; it has none"
        )
    text = arrays[OPTIONS].tobytes().rstrip(b"\0")
    options = _load_yaml(text, f"{OPTIONS} in {path.name}")
    return {str(name): value for name, value in options.items()}, arrays


# What a model is, for its user.


def _describe(name: str, options: dict, hparams: HParams) -> list[str]:
    layers = f"{hparams.num_layers} + {hparams.decoder_layers} layers"
    version = options.get("version")
    by = f", written by Marian {version}" if version else ""
    activation = marian_weights.activation(options)
    found = [
        f"Marian transformer: {name}{by}",
        f"{layers}, d_model {hparams.d_model}, d_ff {hparams.d_ff}, "
        f"{counted(hparams.num_heads, 'head')}, {hparams.norm}-norm, "
        f"{activation}, tied embeddings: {hparams.tied_embeddings}, "
        f"positions: {hparams.positions}",
    ]
    tied = options.get("transformer-tied-layers")
    if tied:
        found.append(
            f"decoder layers that shared weights ({tied}) are now separate "
            "copies, which training would no longer keep equal"
        )
    if hparams.norm == "pre":
        found.append(
            "marian-decoder up to 1.12 does not normalize the keys and values "
            "of the decoder's self-attention; this model does, as "
            "marian-scorer and training do, so its translations may differ"
        )
    return found


def _describe_vocabulary(
    names: Iterable[str],
    source: Side,
    target: Side,
    vocabulary: Vocabulary,
) -> list[str]:
    described = ", ".join(dict.fromkeys(map(os.path.basename, names)))
    sizes = f"{len(source.pieces):,} source and {len(target.pieces):,} target"
    if vocabulary.target is vocabulary:
        sizes = f"{len(target.pieces):,} shared"
    return [f"vocabulary: {sizes} pieces ({described})"]


def _describe_text(folder: pathlib.Path, pieces: Iterable[str]) -> list[str]:
    """Returns what text the model expects, as far as its files tell."""
    found = []
    token = re.compile(f"{SPACE}?(>>.+<<)")
    tags = sorted({m[1] for piece in pieces if (m := token.fullmatch(piece))})
    if tags:
        some = ", ".join(tags[:3]) + (", ..." if len(tags) > 3 else "")
        found.append(
            f"each source line must begin with one of "
            f"{counted(len(tags), 'language token')}: {some}"
        )
    script = folder / "preprocess.sh"
    if script.is_file():
        text = _read_bytes(script).decode(errors="replace")
        programs = re.findall(r"[\w.-]+\.(?:perl|pl|py)\b", text)
        by = ", ".join(dict.fromkeys(programs)) or "its commands"
        found.append(
            "the model expects text that preprocess.sh has normalized, with "
            f"{by}; this toolkit does not run that script"
        )
    return found


def _number(value: Any) -> float:
    """Returns a number from YAML, which takes 1e-1 for text; else NaN.

    Marian's flag without a value, true, means 1.
    """
    try:
        return float(value)
    except (TypeError, ValueError):
        return math.nan


def _search_settings(config: dict) -> tuple[dict[str, Any], list[str]]:
    """Returns the HParams that decoder.yml sets, and what to say about them."""
    changes, found = {}, []
    beam, alpha = config.get("beam-size"), config.get("normalize")
    if beam is not None:
        is_width = type(beam) is int and 1 <= beam <= 1000
        rule = "beam-size in decoder.yml must be an integer from 1 to 1000"
        require(rule, is_width, beam_size=beam)
        changes["beam_width"] = beam
        found.append(f"beam_width is {beam}, as in decoder.yml")
    if alpha is not None and alpha is not False:
        power = _number(alpha)
        rule = f"normalize in decoder.yml must be from 0 to {_MOST_EXPONENT}"
        require(rule, 0 <= power <= _MOST_EXPONENT, normalize=alpha)
        ours = nearest_alpha(power)
        changes["length_penalty"] = ours
        found.append(
            f"length_penalty is {ours:g}: ((5 + length) / 6)^{ours:g} grows "
            f"like Marian's length^{power:g}, as in decoder.yml, around 25 "
            "tokens"
        )
    for name in ("word-penalty", "max-length", "max-length-factor"):
        if config.get(name):
            found.append(f"decoder.yml has a {name}, which is not applied")
    return changes, found
