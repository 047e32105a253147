"""Prints the seconds of CTranslate2's beam search with this package's weights.

    python ctranslate2_search.py FOLDER WORKERS THREADS OUTPUT

`translating.py` writes FOLDER/task.json and FOLDER/weights.npz, and runs this
with the Python of an environment that has CTranslate2 but not this package.
`convert` converts the weights to CTranslate2's format.
"""

import json
import pathlib
import sys

import ctranslate2
import measuring
import numpy as np
from ctranslate2.specs import common_spec, transformer_spec

_EOS = 1
_POSITIONS = 1024


def convert(weights, hparams, vocabulary_size):
    """Returns the TransformerSpec of a model of this package.

    Args:
        weights: mapping of the variables' paths to arrays.
        hparams: dict, the fields of HParams; positions must be sinusoidal.
        vocabulary_size: int.
    """
    num_layers, is_pre_norm = hparams["num_layers"], hparams["norm"] == "pre"
    spec = transformer_spec.TransformerSpec.from_config(
        (num_layers, hparams["num_decoder_layers"] or num_layers),
        hparams["num_heads"],
        pre_norm=is_pre_norm,
        activation=common_spec.Activation.RELU,
    )
    embedding = weights["transformer/embedding/embedding"]
    table = _sinusoids(_POSITIONS, hparams["d_model"])
    spec.encoder.embeddings[0].weight = embedding
    spec.decoder.embeddings.weight = embedding
    spec.decoder.projection.weight = embedding
    for name, stack in (("encoder", spec.encoder), ("decoder", spec.decoder)):
        stack.position_encodings.encodings = table
        for n, layer in enumerate(stack.layer):
            _fill(layer, f"transformer/{name}/layer_{n}", weights)
        if is_pre_norm:
            norm = f"transformer/{name}/top_norm"
            _normalize(stack.layer_norm, norm, weights)
    tokens = [str(i) for i in range(vocabulary_size)]
    spec.register_source_vocabulary(tokens)
    spec.register_target_vocabulary(tokens)
    end = str(_EOS)
    spec.config.unk_token = "0"
    spec.config.bos_token = spec.config.eos_token = end
    spec.config.decoder_start_token = end
    spec.config.layer_norm_epsilon = 1e-6
    return spec


def _sinusoids(length, d_model):
    frequency = 10_000.0 ** (-np.arange(0, d_model, 2) / d_model)
    angle = np.arange(length)[:, None] * frequency
    pairs = np.stack([np.sin(angle), np.cos(angle)], axis=-1)
    return pairs.reshape(length, d_model).astype(np.float32)


def _fill(layer, path, weights):
    """Sets one layer of a spec to the weights whose names begin with `path`."""

    def matrix(*names):
        # Rows are inputs in this package, and outputs in CTranslate2.
        parts = [weights[f"{path}/{name}"].T for name in names]
        return np.ascontiguousarray(np.concatenate(parts))

    def normalize(spec, name):
        _normalize(spec, f"{path}/{name}_norm", weights)

    name = "self_attention"
    layer.self_attention.linear[0].weight = matrix(
        *(f"{name}/{part}" for part in ("query", "key", "value"))
    )
    layer.self_attention.linear[1].weight = matrix(f"{name}/output")
    normalize(layer.self_attention.layer_norm, name)
    if hasattr(layer, "attention"):
        name = "memory_attention"
        layer.attention.linear[0].weight = matrix(f"{name}/query")
        layer.attention.linear[1].weight = matrix(
            f"{name}/key", f"{name}/value"
        )
        layer.attention.linear[2].weight = matrix(f"{name}/output")
        normalize(layer.attention.layer_norm, name)
    for linear, part in (
        (layer.ffn.linear_0, "hidden"),
        (layer.ffn.linear_1, "output"),
    ):
        linear.weight = matrix(f"feed_forward/{part}/kernel")
        linear.bias = weights[f"{path}/feed_forward/{part}/bias"]
    normalize(layer.ffn.layer_norm, "feed_forward")


def _normalize(spec, path, weights):
    spec.gamma = weights[f"{path}/gamma"]
    spec.beta = weights[f"{path}/beta"]


def convert_once(folder, task):
    """Returns the path of the converted model, which is written if missing."""
    path = folder / "ctranslate2"
    if not path.exists():
        weights = dict(np.load(folder / "weights.npz"))
        spec = convert(weights, task["hparams"], task["vocabulary_size"])
        spec.validate()
        spec.optimize(None)
        path.mkdir()
        spec.save(str(path))
    return path


def search_options(task, workers):
    """Returns the options of `translate_batch`."""
    options = {"beam_size": task["beam_width"], "length_penalty": 0.0}
    if task["num_tokens"]:
        return options | {
            "min_decoding_length": task["num_tokens"],
            "max_decoding_length": task["num_tokens"],
            "max_batch_size": -(-len(task["sources"]) // workers),
        }
    # Batches have sentences of similar length, as in this package.
    return options | {"max_batch_size": 1024, "batch_type": "tokens"}


def main(folder, workers, threads, output):
    task = json.loads((folder / "task.json").read_text())
    translator = ctranslate2.Translator(
        str(convert_once(folder, task)),
        compute_type="float32",
        inter_threads=workers,
        intra_threads=threads,
    )
    sources = [[str(i) for i in ids] for ids in task["sources"]]
    options = search_options(task, workers)

    def translate():
        return translator.translate_batch(sources, **options)

    first, results = measuring.timed(translate)
    ids = [[int(i) for i in result.hypotheses[0]] for result in results]
    output.write_text(json.dumps(ids))
    later = measuring.median_seconds(translate, warm_up=0, calls=3)
    print(json.dumps([first, later]))


if __name__ == "__main__":
    main(
        pathlib.Path(sys.argv[1]),
        workers=int(sys.argv[2]),
        threads=int(sys.argv[3]),
        output=pathlib.Path(sys.argv[4]),
    )
