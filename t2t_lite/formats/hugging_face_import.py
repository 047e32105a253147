"""Reads Hugging Face's Marian models: `MarianMTModel` of transformers."""

import dataclasses
import json
import math
import pathlib
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

import numpy as np

from t2t_lite import errors, files
from t2t_lite.errors import InputError
from t2t_lite.formats import channels, hugging_face, tensor_files
from t2t_lite.formats.length_penalty import nearest_alpha
from t2t_lite.formats.portable import PortableModel
from t2t_lite.formats.sentence_pieces import join, kind_of, parse, reordered
from t2t_lite.hparams import HParams
from t2t_lite.text.vocabulary import (
    FIRST_PIECE,
    SPACE,
    Vocabulary,
    is_language_token,
)

# The smallest share of a vocabulary's pieces that each of its SentencePiece
# models must have: those of source and target may share vocab.json.
_LEAST_KNOWN = 0.1
# What MarianConfig assumes where config.json says nothing.
_DEFAULTS = {
    "vocab_size": 58101,
    "decoder_vocab_size": None,
    "max_position_embeddings": 1024,
    "encoder_layers": 12,
    "encoder_ffn_dim": 4096,
    "encoder_attention_heads": 16,
    "decoder_layers": 12,
    "decoder_ffn_dim": 4096,
    "decoder_attention_heads": 16,
    "activation_function": "gelu",
    "d_model": 1024,
    "dropout": 0.1,
    "attention_dropout": 0.0,
    "activation_dropout": 0.0,
    "decoder_start_token_id": 58100,
    "scale_embedding": False,
    "pad_token_id": 58100,
    "eos_token_id": 0,
    "share_encoder_decoder_embeddings": True,
    "tie_word_embeddings": True,
    "num_beams": 1,
    "length_penalty": 1.0,
}
# The class ignores these. A model that has other values is of another kind.
_FIXED = {
    "normalize_before": False,
    "normalize_embedding": False,
    "add_final_layer_norm": False,
    "add_bias_logits": False,
    "static_position_embeddings": True,
    "tie_encoder_decoder": False,
}
_ACTIVATIONS = {
    "relu": "relu",
    "swish": "swish",
    "silu": "swish",
    "gelu": "gelu",
}


def is_hugging_face(path: str | pathlib.Path) -> bool:
    """Returns whether a folder is one of transformers' models, of any class.

    Args:
        path: of the folder.
    """
    try:
        config = files.read_json(files.to_path(path) / "config.json")
    except (OSError, ValueError):
        return False
    return isinstance(config, dict) and "model_type" in config


def read(path: str | pathlib.Path) -> PortableModel:
    """Returns the model of a folder that `MarianMTModel` loads.

    Its logits are the class's own: `<pad>` keeps its vector and its bias.

    Args:
        path: of the folder.

    Raises:
        InputError: a file is missing or damaged, or the model has something
            that this package cannot compute.
    """
    folder = files.to_path(path)
    config = _checked_config(_read_config(folder))
    file, tensors = tensor_files.read_tensors(folder)
    hparams, weights = hparams_and_weights(config, tensors)
    sides = _read_vocabularies(folder, config)
    for name in weights:
        if name.startswith(
            (hugging_face.EMBEDDING, hugging_face.OUTPUT_EMBEDDING)
        ):
            weights[name] = weights[name][sides.target.order]
        elif name.startswith(hugging_face.SOURCE_EMBEDDING):
            weights[name] = weights[name][sides.source.order]
    vocabulary, normalizer = _vocabulary(folder, sides)
    kind = kind_of(vocabulary.target)
    hparams = dataclasses.replace(hparams, vocabulary_type=kind)
    found = [
        _describe_model(config),
        f"weights: {file}, {sum(t.size for t in tensors.values()):,} numbers",
        *_describe_vocabulary(sides, normalizer),
        _describe_search(config, hparams),
    ]
    return PortableModel(hparams, weights, vocabulary, found=tuple(found))


def hparams_and_weights(
    config: Mapping[str, Any], tensors: Mapping[str, np.ndarray]
) -> tuple[HParams, dict[str, np.ndarray]]:
    """Returns the HParams and the weights of a `MarianMTModel`.

    Args:
        config: what config.json holds, overridden by generation_config.json.
        tensors: floats by name, those of the class's state_dict.

    Returns:
        (HParams, float32 weights by their name in a checkpoint, the rows of
        embeddings still in the order of the other program's ids).

    Raises:
        InputError: the config asks for something that this package cannot
            compute, or a tensor is missing, of another shape, or not used.
    """
    config = _checked_config(config)
    taken = hugging_face.Tensors(tensors)
    weights = _take_embeddings(taken, config)
    has_bias = _take_layers(taken, config, weights)
    _check_positions(taken, config)
    taken.require_none_left()
    weights = channels.interleave(weights, config["d_model"])
    return _hparams(config, weights, has_bias), weights


def _hparams(
    config: Mapping[str, Any],
    weights: Mapping[str, np.ndarray],
    attention_bias: bool,
) -> HParams:
    """Returns the HParams of a checked config and these weights."""
    layers = config["encoder_layers"], config["decoder_layers"]
    d_model, heads = config["d_model"], config["encoder_attention_heads"]
    target_VD = weights[f"{hugging_face.EMBEDDING}/embedding"]
    return HParams(
        num_layers=layers[0],
        num_decoder_layers=0 if layers[0] == layers[1] else layers[1],
        d_model=d_model,
        d_ff=config["encoder_ffn_dim"],
        num_heads=heads,
        d_k=d_model // heads,
        d_v=d_model // heads,
        norm_epsilon=hugging_face.EPSILON,
        activation=_ACTIVATIONS[config["activation_function"]],
        attention_bias=attention_bias,
        logit_bias=any(name.endswith("/logit_bias") for name in weights),
        tied_embeddings=_tied_embeddings(config),
        embedding_scale=0.0 if config["scale_embedding"] else 1.0,
        decoder_start=_decoder_start(config, target_VD),
        dropout=config["dropout"],
        attention_dropout=config["attention_dropout"],
        relu_dropout=config["activation_dropout"],
        vocabulary_size=config["decoder_vocab_size"],
        max_length=min(
            config["max_position_embeddings"],
            config.get("model_max_length", hugging_face.MOST_LENGTH),
        ),
        beam_width=config["num_beams"],
        length_penalty=_alpha(config["length_penalty"]),
    )


def _checked_config(config: Mapping[str, Any]) -> dict[str, Any]:
    """Returns a config with what it leaves out filled in."""
    said = {n: value for n, value in config.items() if value is not None}
    config = _DEFAULTS | said
    config["decoder_vocab_size"] = (
        config["decoder_vocab_size"] or config["vocab_size"]
    )
    for name, value in _FIXED.items():
        _require(
            name,
            config.get(name, value) in (value, None),
            config=config,
            expected=value,
        )
    for name, default in _DEFAULTS.items():
        if type(default) is int:
            least = 0 if name.endswith("_id") else 1
            errors.require_int(least, **{name: config[name]})
        elif isinstance(default, bool):
            errors.require(
                f"{name} must be true or false",
                isinstance(config[name], bool),
                **{name: config[name]},
            )
    _check_equal_halves(config)
    activation = config["activation_function"]
    errors.require(
        f"activation_function must be {' or '.join(_ACTIVATIONS)}",
        isinstance(activation, str) and activation in _ACTIVATIONS,
        activation_function=activation,
    )
    return config


def _check_equal_halves(config: Mapping[str, Any]) -> None:
    """Raises InputError if encoder and decoder differ where they must not."""
    for name in ("ffn_dim", "attention_heads"):
        mine, other = f"decoder_{name}", f"encoder_{name}"
        _require(
            mine,
            config[mine] == config[other],
            config=config,
            expected=config[other],
        )
    if config["share_encoder_decoder_embeddings"]:
        size = config["vocab_size"]
        name = "decoder_vocab_size"
        _require(name, config[name] == size, config=config, expected=size)
    rule = "d_model must be a multiple of encoder_attention_heads"
    D, H = config["d_model"], config["encoder_attention_heads"]
    errors.require(rule, D % H == 0, d_model=D, encoder_attention_heads=H)


def _require(
    name: str, holds: bool, config: Mapping[str, Any], expected: Any
) -> None:
    """Raises InputError if config.json holds what cannot be computed."""
    received = {name: config.get(name)}
    errors.require(f"{name} must be {json.dumps(expected)}", holds, **received)


def _tied_embeddings(config: Mapping[str, Any]) -> str:
    """Returns the HParams' word for which embeddings are shared."""
    asked = (
        config["share_encoder_decoder_embeddings"],
        config["tie_word_embeddings"],
    )
    return next(
        w for w, pair in hugging_face.SHARED_AND_TIED.items() if pair == asked
    )


def _take_embeddings(
    taken: hugging_face.Tensors, config: Mapping[str, Any]
) -> dict[str, np.ndarray]:
    """Returns the embeddings' weights, by name in a checkpoint."""
    tied = _tied_embeddings(config)
    D, V = config["d_model"], config["decoder_vocab_size"]
    names = {
        "all": (
            hugging_face.SHARED,
            hugging_face.SOURCE,
            hugging_face.TARGET,
            hugging_face.OUTPUT,
        ),
        "input": (
            hugging_face.SHARED,
            hugging_face.SOURCE,
            hugging_face.TARGET,
        ),
        "target": (hugging_face.TARGET, hugging_face.OUTPUT),
        "none": (hugging_face.TARGET,),
    }
    weights = {
        f"{hugging_face.EMBEDDING}/embedding": taken.take_one(names[tied], V, D)
    }
    if tied in ("target", "none"):
        source_VD = taken.take(hugging_face.SOURCE, config["vocab_size"], D)
        weights[f"{hugging_face.SOURCE_EMBEDDING}/embedding"] = source_VD
    output = hugging_face.EMBEDDING
    if tied in ("input", "none"):
        output = hugging_face.OUTPUT_EMBEDDING
        weights[f"{output}/embedding"] = taken.take(hugging_face.OUTPUT, V, D)
    if hugging_face.LOGITS_BIAS in taken:
        bias_V = taken.take(hugging_face.LOGITS_BIAS, 1, V)[0]
        if bias_V.any():
            weights[f"{output}/logit_bias"] = bias_V
    return weights


def _take_layers(
    taken: hugging_face.Tensors,
    config: Mapping[str, Any],
    weights: dict[str, np.ndarray],
) -> bool:
    """Adds the layers' weights; returns whether attention has biases."""
    D, F = config["d_model"], config["encoder_ffn_dim"]
    biases = {}
    for ours, theirs, attentions in hugging_face.layers(config):
        for name, attention in attentions.items():
            parts = _take_attention(taken, f"{theirs}.{attention}", D)
            weights |= {f"{ours}/{name}/{n}": w for n, w in parts[0].items()}
            biases |= {f"{ours}/{name}/{n}": w for n, w in parts[1].items()}
        for name, dense, shape in hugging_face.dense_layers(D, F):
            kernel = taken.take(f"{theirs}.{dense}.weight", *shape).T
            bias = taken.take(f"{theirs}.{dense}.bias", shape[0])
            weights[f"{ours}/feed_forward/{name}/kernel"] = kernel
            weights[f"{ours}/feed_forward/{name}/bias"] = bias
        for name, norm in hugging_face.norms(attentions):
            gamma = taken.take(f"{theirs}.{norm}.weight", D)
            weights[f"{ours}/{name}_norm/gamma"] = gamma
            beta = taken.take(f"{theirs}.{norm}.bias", D)
            weights[f"{ours}/{name}_norm/beta"] = beta
    has_bias = any(bias.any() for bias in biases.values())
    if has_bias:
        weights |= biases
    return has_bias


def _take_attention(
    taken: hugging_face.Tensors, path: str, d_model: int
) -> tuple[dict[str, np.ndarray], dict[str, np.ndarray]]:
    """Returns (matrices, the two biases that suffice), by name."""
    matrices, biases = {}, {}
    for ours, theirs in hugging_face.PROJECTIONS.items():
        name = f"{path}.{theirs}"
        matrices[ours] = taken.take(f"{name}.weight", d_model, d_model).T
        biases[ours] = taken.take(f"{name}.bias", d_model)
    value_bias, output_JD = biases["value"], matrices["output"]
    folded_D = value_bias.astype(np.float64) @ output_JD.astype(np.float64)
    output_bias = (biases["output"] + folded_D).astype(np.float32)
    return matrices, {"query_bias": biases["query"], "output_bias": output_bias}


def _decoder_start(config: Mapping[str, Any], target_VD: np.ndarray) -> str:
    """Returns the HParams' word for the decoder's first input."""
    start, pad = config["decoder_start_token_id"], config["pad_token_id"]
    V = len(target_VD)
    for name in ("pad_token_id", "eos_token_id"):
        errors.require(
            f"{name} must be below {V}, the size of the vocabulary",
            config[name] < V,
            **{name: config[name]},
        )
    if start == config["eos_token_id"]:
        return "eos"
    errors.require(
        f"decoder_start_token_id must be that of <pad>, {pad}, or of </s>, "
        f"{config['eos_token_id']}",
        start == pad,
        decoder_start_token_id=start,
    )
    if target_VD[pad].any():
        raise InputError(
            "the embedding of <pad> must be zero in a model whose decoder "
            f"starts with it; received row {pad} of norm "
            f"{np.linalg.norm(target_VD[pad]):.3g}"
        )
    return "zeros"


def _alpha(exponent: Any) -> float:
    """Returns the length penalty here that comes nearest to length^exponent."""
    is_number = isinstance(exponent, int | float)
    rule = "length_penalty must be a finite number"
    holds = is_number and math.isfinite(exponent)
    errors.require(rule, holds, length_penalty=exponent)
    return nearest_alpha(exponent)


def _check_positions(
    taken: hugging_face.Tensors, config: Mapping[str, Any]
) -> None:
    """Drops the tables of positions, once they prove to be sines."""
    shape = config["max_position_embeddings"], config["d_model"]
    for stack in ("encoder", "decoder"):
        name = f"model.{stack}.embed_positions.weight"
        if name not in taken:
            continue
        table = taken.take(name, *shape)
        encodings = channels.encodings(*shape)
        sines_first = np.concatenate([encodings[:, ::2], encodings[:, 1::2]], 1)
        # As exact as half precision is.
        if not np.allclose(table, sines_first, rtol=0, atol=2e-3):
            raise InputError(
                f"{name} must be the paper's sines and cosines; received "
                "others, perhaps learned ones"
            )


def _read_config(folder: files.Path) -> dict[str, Any]:
    """Returns what the settings files say, later ones overriding earlier."""
    config = tensor_files.read_dict(folder / "config.json")
    errors.require(
        "model_type must be marian, a MarianMTModel",
        config.get("model_type") == "marian",
        model_type=config.get("model_type"),
    )
    search = folder / "generation_config.json"
    if files.exists(search):
        config |= _search_settings(search, config)
    tokenizer = folder / "tokenizer_config.json"
    if files.exists(tokenizer):
        settings = tensor_files.read_dict(tokenizer)
        length = settings.get("model_max_length")
        # Without a limit, transformers writes 1e30.
        if type(length) is int and 1 <= length <= errors.MOST:
            config["model_max_length"] = length
        config["separate_vocabs"] = settings.get("separate_vocabs", False)
    return config


def _search_settings(
    path: files.Path, config: Mapping[str, Any]
) -> dict[str, Any]:
    """Returns what `generate` follows, whatever config.json says."""
    search = tensor_files.read_dict(path)
    names = ("decoder_start_token_id", "num_beams", "length_penalty")
    for name in ("eos_token_id", "pad_token_id"):
        here = search.get(name)
        if here is not None and here != config.get(name, _DEFAULTS[name]):
            raise InputError(
                f"{path} must have the {name} of config.json; received {here}"
            )
    return {n: search[n] for n in names if search.get(n) is not None}


class _Side(NamedTuple):
    """The pieces of one language."""

    pieces: list[str]  # of the ids here from 2 on
    order: np.ndarray  # int [V], the other program's id of each id here


class _Sides(NamedTuple):
    source: _Side
    target: _Side
    are_separate: bool


def _read_vocabularies(folder: files.Path, config: Mapping[str, Any]) -> _Sides:
    """Returns the pieces of both languages, checked against the config."""
    are_separate = config.get("separate_vocabs", False)
    shared = "share_encoder_decoder_embeddings"
    if are_separate:
        _require(shared, not config[shared], config=config, expected=False)
    source = _read_side(folder / "vocab.json", config, config["vocab_size"])
    if not are_separate:
        _require(
            "decoder_vocab_size",
            config["decoder_vocab_size"] == config["vocab_size"],
            config=config,
            expected=config["vocab_size"],
        )
        return _Sides(source, source, False)
    path, size = folder / "target_vocab.json", config["decoder_vocab_size"]
    return _Sides(source, _read_side(path, config, size), True)


def _read_side(path: files.Path, config: Mapping[str, Any], size: int) -> _Side:
    """Returns the pieces of one vocabulary, in the order of our ids."""
    ids = tensor_files.read_dict(path)
    values = ids.values()
    are_ids = all(type(i) is int for i in values)
    if not are_ids or sorted(values) != list(range(size)):
        raise InputError(
            f"{path} must map {size} pieces, as many as the model has, to the "
            f"ids 0 to {size - 1}; received {len(ids)} pieces, or different ids"
        )
    for piece, name in (("</s>", "eos_token_id"), ("<pad>", "pad_token_id")):
        if ids.get(piece) != config[name]:
            raise InputError(
                f"{path} must give {piece} the {name} of the config, "
                f"{config[name]}; received {ids.get(piece)}"
            )
    if "<unk>" not in ids:
        raise InputError(f"{path} must have a piece <unk>; received none")
    pad, eos, unknown = (ids[p] for p in ("<pad>", "</s>", "<unk>"))
    pieces = sorted(ids, key=ids.get)
    rest = [i for i in range(size) if i not in (pad, eos, unknown)]
    order = [pad, eos, unknown, *rest]
    return _Side([pieces[i] for i in order[FIRST_PIECE:]], np.array(order))


def _vocabulary(folder: files.Path, sides: _Sides) -> tuple[Vocabulary, str]:
    """Returns (the Vocabulary, how SentencePiece normalizes its sources)."""
    source, normalizer = _reordered(folder / "source.spm", sides.source)
    target, _ = _reordered(folder / "target.spm", sides.target)
    return join(source, target), normalizer


def _reordered(path: files.Path, side: _Side) -> tuple[bytes, str]:
    """Returns (a SentencePiece model in our order, its normalizer's name)."""
    model = tensor_files.read_bytes(path)
    try:
        proto = parse(model)
        own = {piece.piece for piece in proto.pieces}
        num_known = sum(piece in own for piece in side.pieces)
        if num_known < _LEAST_KNOWN * len(side.pieces):
            raise InputError(
                f"it has only {num_known:,} of the vocabulary's "
                f"{len(side.pieces):,} pieces, so it belongs to a different "
                "model"
            )
        # In the files that `write` makes, language tokens have their space.
        pieces = [
            SPACE + piece
            if is_language_token(piece) and SPACE + piece in own
            else piece
            for piece in side.pieces
        ]
        return reordered(model, pieces), proto.normalizer_spec.name
    except InputError as error:
        raise InputError(f"{path} cannot be used: {error}") from None


def _describe_model(config: Mapping[str, Any]) -> str:
    return (
        f"Hugging Face {config['model_type']}: {config['encoder_layers']} + "
        f"{config['decoder_layers']} layers, d_model {config['d_model']}, "
        f"d_ff {config['encoder_ffn_dim']}, "
        f"{config['encoder_attention_heads']} heads, "
        f"{config['activation_function']}"
    )


def _describe_vocabulary(sides: _Sides, normalizer: str) -> Iterator[str]:
    source, target = (len(side.order) for side in sides[:2])
    if sides.are_separate:
        yield f"vocabularies: {source:,} source ids, {target:,} target ids"
    else:
        yield f"vocabulary: {source:,} ids for both languages"
    yield (
        f"text: SentencePiece normalizes it ({normalizer}); transformers does "
        "nothing more"
    )
    languages = [*filter(is_language_token, sides.source.pieces)]
    if languages:
        some = " ".join(languages[:8]) + (" ..." if languages[8:] else "")
        yield f"each source begins with the language of its target: {some}"


def _describe_search(config: Mapping[str, Any], hparams: HParams) -> str:
    beam = f"search: beam {hparams.beam_width}"
    exponent = config["length_penalty"]
    if not exponent:
        return f"{beam}, no length penalty"
    return (
        f"{beam}, length penalty ((5 + length) / 6)^{hparams.length_penalty:g},"
        f" which is closest to transformers' length^{exponent:g} for outputs "
        "of 25 tokens"
    )
