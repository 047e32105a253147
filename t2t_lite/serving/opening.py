"""Opens models for clients: those of a model directory, and exports."""

import os
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import tensorflow as tf

from t2t_lite import files
from t2t_lite.decoding.saved_model import DAMAGE
from t2t_lite.decoding.search_options import SearchOptions
from t2t_lite.errors import InputError, reason
from t2t_lite.serving import rest
from t2t_lite.serving.signatures import ServedModel, ServingOptions
from t2t_lite.storage import checkpoints
from t2t_lite.storage.model_directory import ModelDirectory


class Opened(NamedTuple):
    """A model for clients."""

    signatures: Mapping[str, Callable]  # tf.functions of text, by name
    version: str  # its number
    owner: Any  # The signatures live only as long as it does.


def open_directory(
    model_dir: str | os.PathLike,
    *,
    checkpoint: str,
    average_last: int,
    precision: str,
    **options: Any,
) -> Opened:
    """Returns the model of a model directory.

    Args:
        model_dir: its path.
        checkpoint: as for `served_model`.
        average_last: as for `served_model`.
        precision: as for `served_model`.
        **options: as for `serving_options`.

    Raises:
        InputError: the directory has no such model, or an option does not suit
            it.
    """
    directory = ModelDirectory(model_dir)
    served, _ = served_model(
        directory,
        serving_options(directory, **options),
        checkpoint=checkpoint,
        average_last=average_last,
        precision=precision,
    )
    return Opened(served.signatures(), "1", served)


def open_export(path: files.Path) -> Opened:
    """Returns a version of an export.

    Args:
        path: of the folder of this version.

    Raises:
        InputError: TensorFlow cannot load it, or it translates no text.
    """
    import tensorflow_text  # noqa: F401, the ops of its tokenizer

    try:
        with checkpoints.readable_path(path) as readable:
            root = tf.saved_model.load(readable)
        signatures = dict(root.signatures)
    except DAMAGE as error:
        raise InputError(
            f"cannot load {path} ({reason(error)}): export the model again"
        ) from None
    text_signatures = {k: f for k, f in signatures.items() if _takes_texts(f)}
    if rest.DEFAULT_SIGNATURE not in text_signatures:
        raise InputError(
            f"{path} has no signature {rest.DEFAULT_SIGNATURE} that takes texts"
        )
    version = path.name if path.name.isdecimal() else "1"
    return Opened(text_signatures, version, root)


def _takes_texts(signature: Callable) -> bool:
    """Returns whether all inputs of a signature are string [B]."""
    specs = signature.structured_input_signature[1].values()
    return bool(specs) and all(
        spec.dtype == tf.string and spec.shape.rank == 1 for spec in specs
    )


def serving_options(
    directory: ModelDirectory,
    *,
    search: Mapping[str, Any],
    sentences: str,
    max_length: int,
    **options: Any,
) -> ServingOptions:
    """Returns ServingOptions that suit a model.

    Args:
        directory: ModelDirectory.
        search: options of the search by name; None for the model's.
        sentences: "auto", "split" or "whole".
        max_length: as in ServingOptions.
        **options: others of ServingOptions. If no layer and head are given,
            they are the ones that words are aligned by.

    Raises:
        InputError: an option of the search is out of its range.
    """
    settings = directory.settings()
    names = "attention_layer", "attention_head", "attention_reads"
    if settings.alignment_head and not any(
        options.get(name) is not None for name in names
    ):
        options |= dict(zip(names, settings.alignment_head, strict=True))
    return ServingOptions(
        SearchOptions.from_hparams(settings.hparams, **search),
        max_length,
        splitting=settings.splitting(sentences),
        **options,
    )


def served_model(
    directory: ModelDirectory,
    options: ServingOptions,
    *,
    checkpoint: str = "last",
    average_last: int = 1,
    precision: str = "float32",
) -> tuple[ServedModel, str]:
    """Returns a model for clients, and what its weights are.

    Args:
        directory: ModelDirectory.
        options: ServingOptions.
        checkpoint: "last", "best", "averaged", or the path of a checkpoint.
        average_last: int; above 1, the mean of that many of the last ones.
        precision: "float32", "bfloat16" or "float16", of the computation; or
            "int8", as for a Translator.

    Raises:
        InputError: the directory has no such model, or an option does not suit
            it.
    """
    directory.require_task("translation")
    options.check(directory.settings().hparams)
    model, description, _ = directory.load_model(
        checkpoint, average_last, precision
    )
    return ServedModel(model, directory.vocabulary(), options), description
