"""A trained model as a SavedModel that takes text and gives text.

It needs none of this package: TF Serving loads it, and so does any program that
has TensorFlow and tensorflow-text's ops. Beside the versions of a model lie two
files for the server: how it batches requests, and which models there are.
"""

import dataclasses
import json
import os
import pathlib
import tempfile

import tensorflow as tf
import tensorflow_text
from google.protobuf import text_format
from tensorflow_serving.apis import predict_pb2, prediction_log_pb2
from tensorflow_serving.config import model_server_config_pb2

from t2t_lite import files
from t2t_lite.decoding.shapes import batch_shapes
from t2t_lite.errors import InputError
from t2t_lite.serving.signatures import ServedModel

_METADATA, _VOCABULARY = "metadata.json", "vocabulary.model"
_BATCHING = """\
max_batch_size { value: 1024 }
batch_timeout_micros { value: 2000 }
max_enqueued_batches { value: 1000 }
num_batch_threads { value: 2 }
"""


def export(directory, export_dir, checkpoint, average_last, precision, options):
    """Writes <export_dir>/<version>/ and returns its path.

    The version is the next free number. It is written aside and moved into
    place, so that a server that watches the folder sees whole models only.

    Args:
        directory: ModelDirectory.
        export_dir: path of the folder of all versions, made if there is none.
        checkpoint: "last", "best", "averaged", or the path of a checkpoint.
        average_last: int; above 1, the mean of so many of the last ones.
        precision: "float32", "bfloat16" or "float16", of the computation.
        options: ServingOptions.

    Raises:
        InputError: the directory has no such model, an option does not suit
            it, or the folder cannot be written.
    """
    settings = directory.settings()
    options.check(settings.hparams)
    directory.require_task("translation")
    model, description = directory.load_model(
        checkpoint, average_last, precision
    )
    vocabulary = directory.vocabulary()
    metadata = {
        "checkpoint": description,
        "precision": precision,
        "search": options.search._asdict(),
        **{k: v for k, v in options._asdict().items() if k != "search"},
        "hparams": dataclasses.asdict(settings.hparams),
        "vocabulary_size": vocabulary.size,
        "vocabulary_sha256": vocabulary.sha256,
        "data_sha256": settings.data_sha256,
        "versions": {
            "tensorflow": tf.__version__,
            "tensorflow_text": tensorflow_text.__version__,
        },
    }
    served = ServedModel(model, vocabulary, options)
    export_dir = pathlib.Path(export_dir)
    try:
        with files.scratch_folder(export_dir / "model") as aside:
            path = aside / "model"
            _save(served, vocabulary, metadata, path)
            warmup = path / "assets.extra" / "tf_serving_warmup_requests"
            warmup.parent.mkdir()
            write_warmup(warmup, vocabulary, options.max_length)
            _write_server_files(export_dir)
            return _move_to_next_version(path, export_dir)
    except OSError as error:
        raise InputError(
            f"cannot write the export {export_dir}: {error.strerror or error}"
        ) from None
    except tf.errors.OpError as error:  # A disk that is full, say.
        raise InputError(
            f"cannot write the export {export_dir}: {error.message}"
        ) from None


def _save(served, vocabulary, metadata, path):
    """Writes a SavedModel and its assets to `path`."""
    with tempfile.TemporaryDirectory() as folder:
        for name, content in (
            (_METADATA, json.dumps(metadata, indent=2).encode()),
            (_VOCABULARY, vocabulary.model),
        ):
            pathlib.Path(folder, name).write_bytes(content)
        # What the functions refer to must hang on what is saved.
        root = tf.Module()
        root.weights, root.translate_ids = (
            served.variables,
            served.translate_ids,
        )
        root.metadata = tf.saved_model.Asset(f"{folder}/{_METADATA}")
        root.vocabulary = tf.saved_model.Asset(f"{folder}/{_VOCABULARY}")
        tf.saved_model.save(root, str(path), served.signatures())


def write_warmup(path, vocabulary, max_length):
    """Writes the requests that a server runs before it takes any.

    They cover every shape that XLA compiles the search for, and every
    signature, so that no request of a user waits for that or for a trace.

    Args:
        path: of the file of PredictionLog records.
        vocabulary: Vocabulary.
        max_length: int, of the served model.
    """
    texts = dict(_texts_of_lengths(vocabulary, max_length))
    requests = [
        (signature, {"inputs": [texts[length]] * rows})
        for signature in ("serving_default", "translate_nbest")
        for rows, length in batch_shapes(max_length)
        if length in texts
    ]
    shortest = list(texts.values())[:1]
    requests += [
        ("translate_aligned", {"inputs": shortest}),
        ("score", {"sources": shortest, "targets": shortest}),
    ]
    with tf.io.TFRecordWriter(str(path)) as writer:
        for signature, inputs in requests:
            request = predict_pb2.PredictRequest()
            request.model_spec.signature_name = signature
            for name, lines in inputs.items():
                request.inputs[name].CopyFrom(
                    tf.make_tensor_proto(lines, tf.string, [len(lines)])
                )
            log = prediction_log_pb2.PredictionLog()
            log.predict_log.request.CopyFrom(request)
            writer.write(log.SerializeToString())


def _texts_of_lengths(vocabulary, max_length):
    """Yields (length, text that is padded to it) for each padded length."""
    lengths = sorted({length for _, length in batch_shapes(max_length)})
    candidates = [
        word * count
        for word in (" a", "a", ".", " 1")
        for count in range(1, max_length + 1)
    ]
    sizes = [len(ids) for ids in vocabulary.encode(candidates)]
    for shorter, length in zip([0, *lengths], lengths, strict=False):
        for text, size in zip(candidates, sizes, strict=True):
            if shorter < size <= length:
                yield length, text
                break


def _write_server_files(export_dir):
    """Writes what there is not yet: the files are there to be edited."""
    name = export_dir.resolve().name
    models = model_server_config_pb2.ModelServerConfig()
    models.model_config_list.config.add(
        name=name, base_path=f"/models/{name}", model_platform="tensorflow"
    )
    for file, content in (
        ("batching_parameters.txt", _BATCHING),
        ("models.config", text_format.MessageToString(models)),
    ):
        if not (export_dir / file).exists():
            with files.atomic_file(export_dir / file) as output:
                output.write(content)


def _move_to_next_version(path, export_dir):
    while True:
        used = [int(p.name) for p in export_dir.iterdir() if p.name.isdecimal()]
        target = export_dir / str(max(used, default=0) + 1)
        try:
            os.rename(path, target)
            return target
        except OSError:  # Another export took the number.
            if not target.exists():
                raise
