"""What TF Serving reads next to a SavedModel: warm-up requests and settings.

Only this module needs tensorflow-serving-api, an extra.
"""

import pathlib
from collections.abc import Iterator

import tensorflow as tf
from google.protobuf import text_format
from tensorflow_serving.apis import predict_pb2, prediction_log_pb2
from tensorflow_serving.config import model_server_config_pb2

from t2t_lite import files
from t2t_lite.decoding.shapes import batch_shapes
from t2t_lite.text.vocabulary import Vocabulary

_BATCHING = """\
max_batch_size { value: 1024 }
batch_timeout_micros { value: 2000 }
max_enqueued_batches { value: 1000 }
num_batch_threads { value: 2 }
"""


def write_warmup(
    path: pathlib.Path, vocabulary: Vocabulary, max_length: int
) -> None:
    """Writes the requests that a server runs before it takes any.

    They cover every shape that XLA compiles the search for, and every
    signature, so that no request of a user waits for that or for a trace
    (except for alternatives of many texts at once).

    Args:
        path: of the file of PredictionLog records; its folder is made.
        vocabulary: Vocabulary.
        max_length: int, the most tokens of a source of the served model.
    """
    path.parent.mkdir(exist_ok=True)
    with tf.io.TFRecordWriter(str(path)) as writer:
        for signature, inputs in _requests(vocabulary, max_length):
            request = predict_pb2.PredictRequest()
            request.model_spec.signature_name = signature
            for name, lines in inputs.items():
                request.inputs[name].CopyFrom(
                    tf.make_tensor_proto(lines, tf.string, [len(lines)])
                )
            log = prediction_log_pb2.PredictionLog()
            log.predict_log.request.CopyFrom(request)
            writer.write(log.SerializeToString())


def _requests(
    vocabulary: Vocabulary, max_length: int
) -> Iterator[tuple[str, dict[str, list[str]]]]:
    """Yields (signature, inputs) of each request."""
    texts = _texts_by_length(vocabulary, max_length)
    prefix = texts[min(texts)] if texts else ""
    batches = batch_shapes(max_length)
    fewest = min(rows for rows, _ in batches)
    for rows, length in batches:
        if length in texts:
            inputs = {"inputs": [texts[length]] * rows}
            prefixed = inputs | {"prefixes": [prefix] * rows}
            yield "serving_default", inputs
            yield "translate_nbest", inputs
            yield "translate_prefix", prefixed
            if rows == fewest:  # People ask for those of one text at a time.
                yield "alternatives", prefixed
    shortest = [texts[min(texts)]] if texts else []
    yield "translate_aligned", {"inputs": shortest}
    yield "score", {"sources": shortest, "targets": shortest}


def _texts_by_length(vocabulary: Vocabulary, max_length: int) -> dict[int, str]:
    """Returns, for each length of `batch_shapes`, a text that is padded to it.

    There may be lengths for which no text is found.
    """
    lengths = sorted({length for _, length in batch_shapes(max_length)})
    candidates = [
        word * count
        for word in (" a", "a", ".", " 1")
        for count in range(1, max_length + 1)
    ]
    sizes = [len(ids) for ids in vocabulary.encode(candidates)]
    texts = {}
    for shorter, length in zip([0, *lengths], lengths, strict=False):
        for text, size in zip(candidates, sizes, strict=True):
            if shorter < size <= length:
                texts[length] = text
                break
    return texts


def write_settings(export_dir: files.Path) -> None:
    """Writes models.config and batching_parameters.txt, if they are missing.

    Those that exist stay as they are: they are meant to be edited.

    Args:
        export_dir: path of the folder of all versions.
    """
    name = export_dir.resolve().name
    models = model_server_config_pb2.ModelServerConfig()
    models.model_config_list.config.add(
        name=name, base_path=f"/models/{name}", model_platform="tensorflow"
    )
    for file_name, content in (
        ("batching_parameters.txt", _BATCHING),
        ("models.config", text_format.MessageToString(models)),
    ):
        if not (export_dir / file_name).exists():
            with files.atomic_file(export_dir / file_name) as file:
                file.write(content)
