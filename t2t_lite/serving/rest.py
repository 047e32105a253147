"""TensorFlow Serving's REST format: requests to columns, outputs to answers.

Source: https://www.tensorflow.org/tfx/serving/api_rest
"""

import base64
import binascii
import json
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from t2t_lite import files
from t2t_lite.errors import InputError, require

DEFAULT_SIGNATURE = "serving_default"
_KEYS = ("signature_name", "instances", "inputs")  # Of a request's body.
Columns = Mapping[str, list[bytes]]  # B texts for each input, by its name


class TensorSpec(NamedTuple):
    """What a signature takes or gives."""

    dtype: str  # as "DT_STRING"
    shape: list[int]  # -1 for any size


class Request(NamedTuple):
    """What a client asks of a model."""

    signature: str
    columns: Columns
    has_rows: bool  # answered in rows ("predictions"), else in columns


def count_texts(columns: Columns) -> int:
    """Returns B, the number of texts in each of the columns."""
    texts = list(columns.values())
    return len(texts[0])


def parse(body: bytes, inputs: Mapping[str, Sequence[str]]) -> Request:
    """Returns what the body of a request asks for.

    Args:
        body: JSON in UTF-8.
        inputs: names of the inputs of each signature.

    Raises:
        InputError: it is not such JSON, or does not suit the signatures.
    """
    try:
        asked = files.parse_json(body)
    except ValueError as error:
        raise InputError(f"the body is not valid JSON: {error}") from None
    if not isinstance(asked, dict):
        raise InputError("the body must be a JSON object")
    for name in asked:
        if name not in _KEYS:
            raise InputError(
                f"the body may have only {', '.join(_KEYS)}; received "
                f"{name!r:.80}"
            )
    signature = asked.get("signature_name")
    if signature in (None, ""):
        signature = DEFAULT_SIGNATURE
    if not isinstance(signature, str) or signature not in inputs:
        raise InputError(
            f"the model has no signature {signature!r:.80}: its signatures are "
            f"{', '.join(sorted(inputs))}"
        )
    forms = [name for name in ("instances", "inputs") if name in asked]
    if len(forms) != 1:
        raise InputError('the body needs either "instances" or "inputs"')
    names, given = inputs[signature], asked[forms[0]]
    has_rows = forms == ["instances"]
    read = _columns_of_rows if has_rows else _checked_columns
    values = read(given, names)
    columns = {name: [*map(_text, values[name])] for name in names}
    sizes = {name: len(column) for name, column in columns.items()}
    rule = "all inputs must have the same number of texts"
    require(rule, len(set(sizes.values())) == 1, **sizes)
    return Request(signature, columns, has_rows)


def _columns_of_rows(rows: Any, names: Sequence[str]) -> dict[str, list]:
    """Returns the columns of rows, each of which is an object or a text."""
    if not isinstance(rows, list) or not rows:
        raise InputError('"instances" must be a list that is not empty')
    if len(names) == 1:
        (name,) = names
        rows = [_as_named(row, name) for row in rows]
    for row in rows:
        _require_names("an instance", row, names)
    return {name: [row[name] for row in rows] for name in names}


def _as_named(row: Any, name: str) -> Any:
    """Returns {name: text} for a text, which may be {"b64": ...}."""
    is_text = not isinstance(row, dict) or [*row] == ["b64"]
    return {name: row} if is_text else row


def _checked_columns(given: Any, names: Sequence[str]) -> dict[str, list]:
    """Returns columns, which are an object of lists, or a single list."""
    if len(names) == 1 and not isinstance(given, dict):
        given = {names[0]: given}
    _require_names('"inputs"', given, names)
    for name in names:
        if not isinstance(given[name], list):
            raise InputError(f"{name!r} must be a list of texts")
    return given


def _require_names(what: str, given: Any, names: Sequence[str]) -> None:
    needed = " and ".join(map(repr, names))
    if not isinstance(given, dict):
        raise InputError(f"{what} must be a JSON object with {needed}")
    if set(names) != set(given):
        received = ", ".join(map(repr, given)) or "nothing"
        raise InputError(f"{what} must have {needed}; received {received:.200}")


def _text(value: Any) -> bytes:
    """Returns the UTF-8 of a text, or of {"b64": ...}."""
    try:
        if isinstance(value, str):
            return value.encode()
        if isinstance(value, dict) and [*value] == ["b64"]:
            text = base64.b64decode(value["b64"], validate=True)
            text.decode()
            return text
    except (UnicodeError, binascii.Error, TypeError, ValueError):
        raise InputError(
            "a text is neither valid UTF-8 nor valid UTF-8 in base64"
        ) from None
    raise InputError(f"each text must be a string; received {value!r:.80}")


def answer(outputs: Mapping[str, np.ndarray], has_rows: bool) -> str:
    """Returns the JSON of a model's outputs.

    Numbers that are not finite are the bare words NaN, Infinity and -Infinity,
    as TensorFlow Serving writes them.

    Args:
        outputs: arrays [B, ...] of numbers, booleans or UTF-8, by name.
        has_rows: `Request.has_rows`.
    """
    values = {name: _plain(array) for name, array in outputs.items()}
    if len(values) == 1:
        (answered,) = values.values()  # Without its name.
    elif has_rows:
        answered = [
            dict(zip(values, row, strict=True))
            for row in zip(*values.values(), strict=True)
        ]
    else:
        answered = values
    return json.dumps({"predictions" if has_rows else "outputs": answered})


def _plain(array: np.ndarray) -> list:
    """Returns nested lists of JSON values."""
    if array.dtype == np.float32:  # With no more digits than it has.
        return array.astype(str).astype(float).tolist()
    return _with_str(array.tolist())


def _with_str(value: Any) -> Any:
    """Returns nested lists with str in place of bytes."""
    if isinstance(value, list):
        return [_with_str(each) for each in value]
    return value.decode(errors="replace") if isinstance(value, bytes) else value


def status(version: str) -> str:
    """Returns the JSON that says that a version of a model is served."""
    state = {
        "version": version,
        "state": "AVAILABLE",
        "status": {"error_code": "OK", "error_message": ""},
    }
    return json.dumps({"model_version_status": [state]})


def metadata(
    name: str,
    version: str,
    signatures: Mapping[str, Mapping[str, Mapping[str, TensorSpec]]],
) -> str:
    """Returns the JSON that describes the signatures of a model.

    Args:
        name: of the model.
        version: its number.
        signatures: by name, the "inputs" and "outputs" of each.
    """
    described = {
        signature: {
            kind: {key: _tensor_info(key, spec) for key, spec in specs.items()}
            for kind, specs in kinds.items()
        }
        | {"method_name": "tensorflow/serving/predict"}
        for signature, kinds in signatures.items()
    }
    return json.dumps(
        {
            "model_spec": {
                "name": name,
                "signature_name": "",
                "version": version,
            },
            "metadata": {"signature_def": {"signature_def": described}},
        }
    )


def _tensor_info(name: str, spec: TensorSpec) -> dict[str, Any]:
    sizes = [{"size": str(size), "name": ""} for size in spec.shape]
    shape = {"dim": sizes, "unknown_rank": False}
    return {"dtype": spec.dtype, "tensor_shape": shape, "name": name}


def error(message: str) -> str:
    """Returns the JSON of an error."""
    return json.dumps({"error": message})
