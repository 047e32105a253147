"""Files of tensors by name: those of safetensors, and torch's."""

import pathlib
from collections.abc import Mapping
from typing import Any

import numpy as np

from t2t_lite import errors, files
from t2t_lite.errors import InputError


def read_dict(path: files.Path) -> dict[str, Any]:
    """Returns the JSON object that a file holds."""
    try:
        values = files.read_json(path)
        if not isinstance(values, dict):
            raise ValueError("it is not a JSON object")
    except OSError as error:
        raise _unreadable(path, error) from None
    except ValueError as error:
        raise InputError(f"{path} cannot be used: {error}") from None
    return values


def _unreadable(path: files.Path, error: OSError) -> InputError:
    return InputError(f"cannot read {path}: {error.strerror or error}")


def read_bytes(path: files.Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise _unreadable(path, error) from None


def read_tensors(folder: files.Path) -> tuple[str, dict[str, np.ndarray]]:
    """Returns (which file it was, its tensors by name)."""
    whole, index = "model.safetensors", "model.safetensors.index.json"
    if files.exists(folder / whole):
        return whole, _read_safetensors(folder / whole)
    if files.exists(folder / index):
        return index, _read_shards(folder, index)
    pickled = "pytorch_model.bin"
    if files.exists(folder / pickled):
        return pickled, _read_pickled(folder / pickled)
    raise InputError(
        f"{folder} must have model.safetensors or pytorch_model.bin; received "
        "neither"
    )


def _read_shards(folder: files.Path, index: str) -> dict[str, np.ndarray]:
    """Returns the tensors of all the files that an index names."""
    shards = read_dict(folder / index).get("weight_map")
    is_map = isinstance(shards, dict) and shards
    if not is_map or not all(_is_name(name) for name in shards.values()):
        raise InputError(
            f"{folder / index} must map tensors to files of its folder; "
            "received something else"
        )
    tensors = {}
    for name in sorted(set(shards.values())):
        tensors |= _read_safetensors(folder / name)
    missing = sorted(shards.keys() - tensors.keys())
    if missing:
        raise InputError(
            f"{shards[missing[0]]} must hold {missing[0]}, as {index} says; it "
            "does not"
        )
    return tensors


def _is_name(name: Any) -> bool:
    """Returns whether this is the name of a file in the same folder."""
    is_text = isinstance(name, str) and bool(name)
    return is_text and name == pathlib.PurePath(name).name != ".."


def _read_safetensors(path: files.Path) -> dict[str, np.ndarray]:
    """Returns the arrays of one file; bfloat16 ones become float32."""
    errors.require_extra("safetensors", "formats")
    import safetensors

    data = read_bytes(path)
    try:
        found = safetensors.deserialize(data)
    except safetensors.SafetensorError as error:
        raise InputError(
            f"{path} is not a complete safetensors file: {error}"
        ) from None
    return {name: _as_array(path, name, each) for name, each in found}


# Before this version, weights_only=True was no protection (CVE-2025-32434).
_FIRST_SAFE_TORCH = (2, 6)
_NUMPY_TYPES = {"F64": np.float64, "F32": np.float32, "F16": np.float16}


def _as_array(path: files.Path, name: str, each: Mapping) -> np.ndarray:
    """Returns one tensor of a safetensors file as an array."""
    dtype, data = each["dtype"], each["data"]
    if dtype == "BF16":  # The upper half of a float32.
        halves = np.frombuffer(data, np.uint16).astype(np.uint32)
        return (halves << 16).view(np.float32).reshape(each["shape"])
    if dtype not in _NUMPY_TYPES:
        raise InputError(
            f"the tensors of {path} must be floats, not quantized; received "
            f"{name} of type {dtype}"
        )
    return np.frombuffer(data, _NUMPY_TYPES[dtype]).reshape(each["shape"])


def _read_pickled(path: files.Path) -> dict[str, np.ndarray]:
    """Returns the arrays of a file of torch that holds tensors only."""
    errors.require_extra("torch", "torch", _how_to_convert(path))
    import torch

    if tuple(map(int, torch.__version__.split(".")[:2])) < _FIRST_SAFE_TORCH:
        raise InputError(
            f"{path} was not loaded, because a file can make torch "
            f"{torch.__version__} run arbitrary code: install torch 2.6 or "
            "later"
        )
    try:
        path.open("rb").close()
    except OSError as error:
        raise _unreadable(path, error) from None
    try:
        tensors = torch.load(path, map_location="cpu", weights_only=True)
    except Exception:  # Of all sorts; their text says how to load it anyway,
        # which runs what is in it.
        raise InputError(
            f"{path} must be a complete file that holds tensors and nothing "
            "else; received one that torch refuses with weights_only=True"
        ) from None
    is_dict = isinstance(tensors, dict)
    if not is_dict or not all(map(torch.is_tensor, tensors.values())):
        raise InputError(f"{path} must hold tensors by name")
    return {name: each.float().numpy() for name, each in tensors.items()}


def _how_to_convert(path: files.Path) -> str:
    """Returns what to do instead of installing torch."""
    return (
        f'convert {path} elsewhere: MarianMTModel.from_pretrained("FOLDER")'
        '.save_pretrained("FOLDER") writes a model.safetensors'
    )
