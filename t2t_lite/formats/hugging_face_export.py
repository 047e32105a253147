"""Writes Hugging Face's Marian models: `MarianMTModel` of transformers."""

import json
import pathlib
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from t2t_lite import errors, files
from t2t_lite.errors import InputError
from t2t_lite.formats import channels, hugging_face
from t2t_lite.formats.length_penalty import nearest_exponent
from t2t_lite.formats.portable import PortableModel
from t2t_lite.formats.sentence_pieces import parse
from t2t_lite.hparams import HParams
from t2t_lite.text.vocabulary import (
    FIRST_PIECE,
    SPACE,
    Vocabulary,
    is_language_token,
)
from t2t_lite.token_ids import EOS, PAD

NEEDS = ("safetensors", "formats")  # A module, and the extra it comes with.
QUANTIZATIONS = ("float16", "bfloat16")
_NO_PART = -100.0  # The logit of an id that gets no share of the softmax.


def write(
    model: PortableModel,
    folder: str | pathlib.Path,
    *,
    quantization: str | None = None,
) -> None:
    """Writes a folder that `MarianMTModel` and `MarianTokenizer` load.

    It appears complete or not at all. Ids are those of this package.

    Args:
        model: with hparams, weights and vocabulary.
        folder: path, on this machine, of a folder that does not exist yet.
        quantization: "float16" or "bfloat16", what the weights are stored in;
            None for float32.

    Raises:
        InputError: the model has something that the class cannot compute, or
            the folder exists or cannot be written.
    """
    errors.require_extra("safetensors", "formats")
    import safetensors.numpy

    require_quantization(quantization)
    require_supported(model.hparams)
    files.require_new_folder(folder)
    source = model.vocabulary
    target = source.target
    precision = quantization or "float32"
    settings = _settings(
        model.hparams, source, target=target, precision=precision
    )
    contents = {
        **{name: _json(values) for name, values in settings.items()},
        "source.spm": source.model,
        "target.spm": target.model,
        "README.md": _readme(model.hparams).encode(),
    }
    tensors = _tensors(
        model.hparams,
        model.weights,
        source_size=source.size,
        target_size=target.size,
    )
    tensors = {n: _rounded(n, t, precision) for n, t in tensors.items()}
    # Without the metadata, it is not loaded. (`save_file` would let only its
    # owner read it.)
    contents["model.safetensors"] = safetensors.numpy.save(
        tensors, metadata={"format": "pt"}
    )
    try:
        with files.atomic_folder(folder) as scratch:
            for name, data in contents.items():
                (scratch / name).write_bytes(data)
    except OSError as error:
        what = error.strerror or error
        raise InputError(f"cannot write {folder}: {what}") from None


def _json(values: Mapping[str, Any]) -> bytes:
    """Returns the content of a JSON file."""
    return (json.dumps(values, indent=2, ensure_ascii=False) + "\n").encode()


def require_quantization(quantization: str | None) -> None:
    """Raises InputError if weights cannot be stored in a quantization."""
    errors.require(
        "quantization of a Hugging Face model must be None or "
        f"{' or '.join(QUANTIZATIONS)}",
        quantization is None or quantization in QUANTIZATIONS,
        quantization=quantization,
    )


def require_supported(hparams: HParams) -> None:
    """Raises InputError for a setting that `MarianMTModel` cannot compute."""
    D, H = hparams.d_model, hparams.num_heads
    rules = {
        "attention_window": ("0", hparams.attention_window == 0),
        "positions": ("sinusoidal", hparams.positions == "sinusoidal"),
        "norm": ("post", hparams.norm == "post"),
        "d_k": ("d_model / num_heads", hparams.d_k * H == D),
        "d_v": ("d_model / num_heads", hparams.d_v * H == D),
        "norm_epsilon": (
            f"at most {hugging_face.EPSILON}",
            hparams.norm_epsilon <= hugging_face.EPSILON,
        ),
        "embedding_scale": (
            "0, 1 or sqrt(d_model)",
            hparams.embedding_scale in (0.0, 1.0, D**0.5),
        ),
    }
    for name, (accepted, holds) in rules.items():
        rule = f"{name} must be {accepted} for a Hugging Face Marian model"
        errors.require(rule, holds, **{name: getattr(hparams, name)})


def _tensors(
    hparams: HParams,
    weights: Mapping[str, np.ndarray],
    source_size: int,
    target_size: int,
) -> dict[str, np.ndarray]:
    """Returns the class's tensors, float32 by name."""
    taken = hugging_face.Tensors(
        channels.separate(dict(weights), hparams.d_model)
    )
    tensors = _embedding_tensors(
        hparams, taken, source_size=source_size, target_size=target_size
    )
    D, F = hparams.d_model, hparams.d_ff
    sizes = {
        "encoder_layers": hparams.num_layers,
        "decoder_layers": hparams.decoder_layers,
    }
    for ours, theirs, attentions in hugging_face.layers(sizes):
        for name, attention in attentions.items():
            parts = _attention_tensors(taken, f"{ours}/{name}", hparams)
            tensors |= {f"{theirs}.{attention}.{n}": t for n, t in parts}
        for name, dense, (rows, columns) in hugging_face.dense_layers(D, F):
            path = f"{ours}/feed_forward/{name}"
            kernel = taken.take(f"{path}/kernel", columns, rows)
            tensors[f"{theirs}.{dense}.weight"] = kernel.T
            tensors[f"{theirs}.{dense}.bias"] = taken.take(f"{path}/bias", rows)
        for name, norm in hugging_face.norms(attentions):
            path = f"{ours}/{name}_norm"
            tensors[f"{theirs}.{norm}.weight"] = taken.take(f"{path}/gamma", D)
            tensors[f"{theirs}.{norm}.bias"] = taken.take(f"{path}/beta", D)
    taken.require_none_left()
    return tensors


def _embedding_tensors(
    hparams: HParams,
    taken: hugging_face.Tensors,
    source_size: int,
    target_size: int,
) -> dict[str, np.ndarray]:
    """Returns the class's embeddings and its bias on the logits."""
    tied, D, V = hparams.tied_embeddings, hparams.d_model, target_size
    target_VD = taken.take(f"{hugging_face.EMBEDDING}/embedding", V, D)
    bias_V, output = np.zeros(V, np.float32), hugging_face.EMBEDDING
    tensors = {}
    if tied in ("input", "none"):
        output = hugging_face.OUTPUT_EMBEDDING
        tensors[hugging_face.OUTPUT] = taken.take(f"{output}/embedding", V, D)
    if hparams.logit_bias:
        bias_V = taken.take(f"{output}/logit_bias", V)
    if hparams.decoder_start == "zeros" and target_VD[PAD].any():
        # Training has moved it, as an output. It must be the zeros that the
        # decoder starts with, and its logit, now 0, must not affect the
        # softmax.
        target_VD, bias_V = target_VD.copy(), bias_V.copy()
        target_VD[PAD] = 0
        bias_V[PAD] = _NO_PART
    tensors[hugging_face.LOGITS_BIAS] = bias_V[None]
    if tied == "all":  # The class saves one of the four, and ties the others.
        return tensors | {hugging_face.SHARED: target_VD}
    if tied == "input":  # It ties nothing then, so each must be in the file.
        return tensors | dict.fromkeys(
            (hugging_face.SHARED, hugging_face.SOURCE, hugging_face.TARGET),
            target_VD,
        )
    source_VD = taken.take(
        f"{hugging_face.SOURCE_EMBEDDING}/embedding", source_size, D
    )
    return tensors | {
        hugging_face.SOURCE: source_VD,
        hugging_face.TARGET: target_VD,
    }


def _attention_tensors(
    taken: hugging_face.Tensors, path: str, hparams: HParams
) -> Iterator[tuple[str, np.ndarray]]:
    """Yields (name, tensor) of the four projections and their biases."""
    D = hparams.d_model
    for ours, theirs in hugging_face.PROJECTIONS.items():
        yield f"{theirs}.weight", taken.take(f"{path}/{ours}", D, D).T
        bias = np.zeros(D, np.float32)
        if hparams.attention_bias and ours in ("query", "output"):
            bias = taken.take(f"{path}/{ours}_bias", D)
        yield f"{theirs}.bias", bias


def _rounded(name: str, tensor: np.ndarray, precision: str) -> np.ndarray:
    """Returns a tensor as it is written, in memory of its own."""
    dtype = precision
    if precision == "bfloat16":
        import ml_dtypes

        dtype = ml_dtypes.bfloat16
    with np.errstate(over="ignore"):
        rounded = np.ascontiguousarray(tensor, dtype)
    if not np.isfinite(rounded).all():
        raise InputError(
            f"{name} must be finite in {precision}; received "
            f"{np.abs(tensor).max():g}: choose bfloat16 or float32"
        )
    return rounded


def _settings(
    hparams: HParams, source: Vocabulary, target: Vocabulary, precision: str
) -> dict[str, dict[str, Any]]:
    """Returns what the JSON files hold, by their names."""
    source_ids, target_ids = _ids(source), _ids(target)
    are_separate = target_ids != source_ids
    if are_separate and _is_shared(hparams):
        raise InputError(
            "source and target must have the same pieces for a Hugging Face "
            "model that shares their embeddings; received different ones"
        )
    contents = {
        "config.json": _config(
            hparams, source, target=target, precision=precision
        ),
        "generation_config.json": _generation_config(hparams),
        "tokenizer_config.json": _tokenizer_config(hparams, are_separate),
        "vocab.json": source_ids,
    }
    if are_separate:
        contents["target_vocab.json"] = target_ids
    return contents


def _is_shared(hparams: HParams) -> bool:
    """Returns whether source and target share one embedding."""
    shared, _ = hugging_face.SHARED_AND_TIED[hparams.tied_embeddings]
    return shared


def _config(
    hparams: HParams, source: Vocabulary, target: Vocabulary, precision: str
) -> dict[str, Any]:
    """Returns what config.json holds."""
    shared, tied = hugging_face.SHARED_AND_TIED[hparams.tied_embeddings]
    sizes = {}
    for stack, layers in (
        ("encoder", hparams.num_layers),
        ("decoder", hparams.decoder_layers),
    ):
        sizes[f"{stack}_layers"] = layers
        sizes[f"{stack}_ffn_dim"] = hparams.d_ff
        sizes[f"{stack}_attention_heads"] = hparams.num_heads
    return {
        "architectures": ["MarianMTModel"],
        "model_type": "marian",
        "dtype": precision,
        "is_encoder_decoder": True,
        "vocab_size": source.size,
        "decoder_vocab_size": target.size,
        "d_model": hparams.d_model,
        **sizes,
        "activation_function": hparams.activation,
        "dropout": hparams.dropout,
        "attention_dropout": hparams.attention_dropout,
        "activation_dropout": hparams.relu_dropout,
        "max_position_embeddings": _most_positions(hparams),
        "static_position_embeddings": True,
        "scale_embedding": hparams.embedding_scale != 1.0,
        "share_encoder_decoder_embeddings": shared,
        "tie_word_embeddings": tied,
        **_special_ids(hparams),
    }


def _most_positions(hparams: HParams) -> int:
    """Returns how many tokens the class computes positions for."""
    longest = hparams.max_length + hparams.max_extra_length
    return max(hugging_face.MOST_LENGTH, longest)


def _special_ids(hparams: HParams) -> dict[str, Any]:
    starts = {"eos": EOS, "zeros": PAD}
    return {
        "pad_token_id": PAD,
        "bos_token_id": None,
        "eos_token_id": EOS,
        "decoder_start_token_id": starts[hparams.decoder_start],
        # A truncated output stays as it is, as here; by default, the class
        # would end it with id 0.
        "forced_eos_token_id": None,
    }


def _generation_config(hparams: HParams) -> dict[str, Any]:
    """Returns what generation_config.json holds."""
    return {
        **_special_ids(hparams),
        # As OPUS-MT's models have it, so that other readers know it too. An
        # infinite bias would do the same to the logits that are compared.
        "bad_words_ids": [[PAD]],
        "max_length": _most_positions(hparams),
        "num_beams": hparams.beam_width,
        "length_penalty": nearest_exponent(hparams.length_penalty),
    }


def _tokenizer_config(hparams: HParams, are_separate: bool) -> dict[str, Any]:
    """Returns what tokenizer_config.json holds."""
    return {
        "tokenizer_class": "MarianTokenizer",
        "source_lang": None,
        "target_lang": None,
        "separate_vocabs": are_separate,
        "model_max_length": hparams.max_length,
        "clean_up_tokenization_spaces": False,
        "unk_token": "<unk>",
        "eos_token": "</s>",
        "pad_token": "<pad>",
    }


def _ids(vocabulary: Vocabulary) -> dict[str, int]:
    """Returns the id of each piece, by MarianTokenizer's name for it."""
    proto = parse(vocabulary.model)
    ids = {"<pad>": PAD, "</s>": EOS, "<unk>": vocabulary.unknown_id}
    for i in range(FIRST_PIECE, vocabulary.size):
        if i == vocabulary.unknown_id:
            continue
        piece = proto.pieces[i - FIRST_PIECE].piece
        name = piece.removeprefix(SPACE)
        if not is_language_token(name):
            name = piece
        elif not proto.normalizer_spec.remove_extra_whitespaces:
            raise InputError(
                f"a vocabulary with {name} must drop repeated spaces for a "
                "Hugging Face model, whose tokenizer strips that token but "
                "leaves the space after it; received one that keeps them"
            )
        # SentencePiece models have their own </s>; no text is cut into it.
        ids[f"<unused {i}>" if name in ids else name] = i
    return dict(sorted(ids.items(), key=lambda item: item[1]))


def _readme(hparams: HParams) -> str:
    """Returns the text of README.md."""
    return _README.format(
        epsilon=f"{hparams.norm_epsilon:g}",
        alpha=f"{hparams.length_penalty:g}",
        exponent=f"{nearest_exponent(hparams.length_penalty):g}",
        extra=hparams.max_extra_length,
        most=_most_positions(hparams),
    )


_README = """\
---
library_name: transformers
pipeline_tag: translation
---

# A Transformer of t2t_lite for Hugging Face transformers

    from transformers import MarianMTModel, MarianTokenizer

    tokenizer = MarianTokenizer.from_pretrained("FOLDER")
    model = MarianMTModel.from_pretrained("FOLDER")
    batch = tokenizer(["A sentence."], return_tensors="pt", padding=True)
    output = model.generate(**batch, num_beams=4, length_penalty=0.0)
    print(tokenizer.batch_decode(output, skip_special_tokens=True))

Ids are those of t2t_lite: 0 is `<pad>`, 1 is `</s>`, and piece n of
`source.spm` and `target.spm` is n + 2.

What differs from t2t_lite:

- Layer normalization adds 1e-5 to the variance, which `MarianMTModel` has
  fixed; this model was trained with {epsilon}. Where it is not 1e-5, logits
  differ by some hundred-thousandths of their size, and so do scores.
- The score of an output is log P / length^`length_penalty`; t2t_lite has
  log P / ((5 + length) / 6)^alpha. At `length_penalty=0.0` and alpha 0 they are
  equal. For alpha = {alpha}, `generation_config.json` has {exponent}, which
  weighs one more token alike in outputs of 25 tokens.
- `generate` stops at {most} tokens; t2t_lite stops {extra} tokens after the
  length of the source.
- `MarianTokenizer` takes `>>...<<` at the start of a line for a language, and
  for unknown if the vocabulary has none; t2t_lite takes it for text.
- `generate` drops an end of sentence that ranks below the beam's width in its
  step; t2t_lite keeps it.
"""
