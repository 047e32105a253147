"""A model as a folder that `ctranslate2.Translator` loads.

CTranslate2 is an engine for CPUs and GPUs that does its work without Python or
TensorFlow. Its format has no id for padding: ids start at EOS, one less than
here. Positions are written as a table, with rows for the longest source that
the model takes and the longest target of such a source, and never fewer than
1024; beyond the last row CTranslate2 stops with an error.

Its attention has one depth for queries, keys and values: where d_k and d_v
differ, the smaller ones are padded with zeros, which change no product.
"""

import dataclasses
import json
import os
import pathlib
from collections.abc import Mapping
from types import ModuleType
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import sentencepiece

from t2t_lite import files, hardware
from t2t_lite.errors import (
    InputError,
    program,
    reason,
    require,
    require_extra,
)
from t2t_lite.formats import channels
from t2t_lite.formats.length_penalty import nearest_exponent
from t2t_lite.formats.portable import PortableModel
from t2t_lite.hparams import HParams, from_dict
from t2t_lite.storage import settings_file
from t2t_lite.text.vocabulary import FIRST_PIECE, Vocabulary
from t2t_lite.token_ids import EOS

if TYPE_CHECKING:
    from ctranslate2.specs import attention_spec, model_spec, transformer_spec

NEEDS = ("ctranslate2", "ctranslate2")  # The package, and its extra.
QUANTIZATIONS = ("int8", "int8_float32", "float16", "bfloat16")
MODEL = "model.bin"  # The weights.
# Not read by CTranslate2.
METADATA = "metadata.json"
END, UNKNOWN = "</s>", "<unk>"  # What tokens are called there.
_FEWEST_POSITIONS = 1024
_MODEL = "transformer/"  # Begins the names of weights.


def write(
    model: PortableModel,
    folder: str | os.PathLike,
    *,
    quantization: str | None = None,
    metadata: Mapping[str, Any] | None = None,
) -> pathlib.Path:
    """Writes a new folder that CTranslate2 loads, whole or not at all.

    Next to its files are those of SentencePiece (vocabulary.model, or
    source.model and target.model), a README.md, and metadata.json with the
    settings.

    Args:
        model: with hparams, weights by their name in a checkpoint, and a
            vocabulary.
        folder: path, on this machine, of a folder that does not exist yet.
        quantization: "int8", "int8_float32", "float16" or "bfloat16", what the
            weights are stored in; None for float32.
        metadata: what else metadata.json says.

    Returns:
        the folder's path.

    Raises:
        InputError: ctranslate2 is not installed, the format cannot carry the
            model, the weights are not those of the settings, or the folder
            cannot be written.
    """
    load_library()
    require_quantization(quantization)
    require_supported(model.hparams)
    folder = files.to_path(folder)
    files.require_new_folder(folder)
    spec = _converted(model, quantization)
    try:
        with files.atomic_folder(folder) as aside:
            spec.save(str(aside))
            _write_beside(
                model, aside, quantization=quantization, metadata=metadata or {}
            )
    except OSError as error:  # A full disk, for example.
        raise InputError(
            f"cannot write {folder}: {error.strerror or reason(error)}"
        ) from None
    return folder


def load_library() -> ModuleType:
    """Returns the package ctranslate2.

    On an AMD CPU it multiplies with oneDNN, whose int8 products saturate if
    the CPU has no instructions for them; those of MKL, which it also has, do
    not. The environment variable CT2_USE_MKL takes precedence.

    Raises:
        InputError: it is not installed.
    """
    require_extra(*NEEDS)
    if hardware.lacks_vnni():
        os.environ.setdefault("CT2_USE_MKL", "1")
    import ctranslate2

    return ctranslate2


def require_quantization(quantization: str | None) -> None:
    """Raises InputError if weights cannot be stored in a quantization."""
    require(
        f"quantization must be None or one of {', '.join(QUANTIZATIONS)}",
        quantization is None or quantization in QUANTIZATIONS,
        quantization=quantization,
    )


def require_supported(hparams: HParams) -> None:
    """Raises InputError if CTranslate2's format cannot carry a model."""
    require(
        "CTranslate2 does not support windowed attention: its models must have "
        "attention_window=0",
        hparams.attention_window == 0,
        attention_window=hparams.attention_window,
    )


def num_positions(hparams: HParams) -> int:
    """Returns how many rows the written table of positions has."""
    if hparams.positions == "learned":
        return hparams.learned_positions
    longest = hparams.max_length + hparams.max_extra_length
    return max(_FEWEST_POSITIONS, longest)


def is_written(folder: str | os.PathLike) -> bool:
    """Returns whether a folder holds a model for CTranslate2."""
    return files.exists(files.to_path(folder) / MODEL)


def read_metadata(folder: str | os.PathLike) -> dict[str, Any]:
    """Returns what a folder's metadata.json says, with "hparams" as HParams.

    Raises:
        InputError: it cannot be used.
    """
    path = files.to_path(folder) / METADATA
    try:
        values = files.read_json(path)
        require(
            "splitting must be the fields of a Splitting",
            isinstance(values["splitting"], dict),
            splitting=values["splitting"],
        )
        return values | {"hparams": from_dict(values["hparams"])}
    except (LookupError, OSError, TypeError, ValueError) as error:
        raise InputError(
            f"{folder} is not a complete folder from {program('export')}: "
            f"{METADATA} cannot be used ({reason(error)})"
        ) from None


def read_hparams(path: str | os.PathLike) -> HParams:
    """Returns the HParams of a model that CTranslate2 can run.

    Args:
        path: of a model directory, or of a folder that `write` wrote.

    Raises:
        InputError: there is no such model.
    """
    values = read_metadata if is_written(path) else settings_file.read
    hparams = values(path)["hparams"]
    require_supported(hparams)
    return hparams


def load_vocabulary(folder: str | os.PathLike) -> Vocabulary:
    """Returns the Vocabulary of a folder that `write` wrote.

    Raises:
        InputError: it cannot be read.
    """
    vocabulary = Vocabulary.load_from(folder)
    if vocabulary.sha256 != read_metadata(folder)["vocabulary_sha256"]:
        raise InputError(
            f"the SentencePiece models in {folder} are not those of its "
            "model: export it again"
        )
    return vocabulary


def token_names(vocabulary: Vocabulary) -> list[str]:
    """Returns what CTranslate2 calls the ids from EOS on, all but PAD.

    They are "</s>" and then the pieces of the SentencePiece model, as its
    `encode` gives them. Pieces that the model has no id for are unknown there,
    too.

    Args:
        vocabulary: Vocabulary of one side.

    Raises:
        InputError: a piece of text is called "</s>" or "<unk>".
    """
    processor = sentencepiece.SentencePieceProcessor()
    processor.LoadFromSerializedProto(vocabulary.model)
    pieces = range(vocabulary.size - FIRST_PIECE)
    names = [processor.id_to_piece(piece) for piece in pieces]
    unknown = vocabulary.unknown_id - FIRST_PIECE
    for piece in pieces:
        if names[piece] not in (END, UNKNOWN) or piece == unknown:
            continue
        is_text = not (processor.IsControl(piece) or processor.IsUnused(piece))
        require(
            f"CTranslate2 reserves the names {END} and {UNKNOWN}, so no piece "
            "of text may have them",
            not is_text,
            piece=names[piece],
        )
        names[piece] = _free_name(names[piece], names)
    names[unknown] = UNKNOWN
    return [END, *names]


def _free_name(name: str, taken: list[str]) -> str:
    while name in taken:
        name += "_"
    return name


def _converted(
    model: PortableModel, quantization: str | None
) -> "transformer_spec.TransformerSpec":
    """Returns CTranslate2's specification, with all weights in it."""
    weights = _Weights(model.weights, quantization)
    spec = _filled(model, weights)
    weights.require_all_taken()
    spec.validate()
    spec.optimize(quantization)
    return spec


class _Weights:
    """The weights of a model by name, each of the shape that it must have.

    Args:
        tensors: dict of str to array.
        quantization: as for `write`.
    """

    def __init__(
        self, tensors: Mapping[str, np.ndarray], quantization: str | None
    ):
        self._tensors, self._taken = tensors, set()
        self.dtype = np.dtype(np.float32)
        if quantization == "bfloat16":
            # CTranslate2 itself would need torch to round them.
            import ml_dtypes

            self.dtype = np.dtype(ml_dtypes.bfloat16)

    def take(self, name: str, *shape: int) -> np.ndarray:
        """Returns a weight of this shape, float32 or bfloat16.

        Args:
            name: of the weight, without "transformer/".
            *shape: of the weight.

        Raises:
            InputError: there is no such weight, or it has another shape.
        """
        self._taken.add(_MODEL + name)
        tensor = self._tensors.get(_MODEL + name)
        received = "nothing" if tensor is None else list(tensor.shape)
        if received != list(shape):
            raise InputError(
                "the weights must match the settings: "
                f"{_MODEL}{name} must be {list(shape)}; received {received}"
            )
        return np.asarray(tensor, self.dtype)

    def require_all_taken(self) -> None:
        """Raises InputError if there are weights that nothing took."""
        for name in sorted(self._tensors.keys() - self._taken):
            raise InputError(
                "the weights must match the settings: such a model has no "
                f"{name}; received {list(self._tensors[name].shape)}"
            )


def _filled(
    model: PortableModel, weights: _Weights
) -> "transformer_spec.TransformerSpec":
    """Returns the specification of a model with its weights."""
    from ctranslate2.specs import common_spec, transformer_spec

    hparams = model.hparams
    spec = transformer_spec.TransformerSpec.from_config(
        (hparams.num_layers, hparams.decoder_layers),
        hparams.num_heads,
        pre_norm=hparams.norm == "pre",
        activation={
            "relu": common_spec.Activation.RELU,
            "swish": common_spec.Activation.SWISH,
            "gelu": common_spec.Activation.GELU,
        }[hparams.activation],
    )
    sources = token_names(model.vocabulary)
    targets = token_names(model.vocabulary.target)
    spec.register_source_vocabulary(sources)
    spec.register_target_vocabulary(targets)
    _configure(spec, hparams)
    _fill_embeddings(
        spec,
        hparams,
        weights=weights,
        num_sources=len(sources),
        num_targets=len(targets),
    )
    for name, stack in (("encoder", spec.encoder), ("decoder", spec.decoder)):
        _fill_stack(stack, name, hparams=hparams, weights=weights)
    return spec


def _configure(
    spec: "transformer_spec.TransformerSpec", hparams: HParams
) -> None:
    """Sets in config.json how `translate_batch` is to take pieces."""
    config = spec.config
    config.unk_token = UNKNOWN
    config.eos_token = config.bos_token = config.decoder_start_token = END
    config.add_source_eos = True
    config.layer_norm_epsilon = hparams.norm_epsilon
    is_zero = hparams.decoder_start == "zeros"
    spec.decoder.start_from_zero_embedding = is_zero
    scale = hparams.embedding_scale or hparams.d_model**0.5
    spec.encoder.scale_embeddings = spec.decoder.scale_embeddings = scale


def _fill_embeddings(
    spec: "transformer_spec.TransformerSpec",
    hparams: HParams,
    weights: _Weights,
    num_sources: int,
    num_targets: int,
) -> None:
    """Gives a specification its embeddings and its pre-softmax.

    Args:
        spec: to be filled.
        hparams: HParams.
        weights: of the model.
        num_sources: how many ids the source has, not counting PAD.
        num_targets: how many the target has.
    """
    ties, D = hparams.tied_embeddings, hparams.d_model
    source = "source_embedding" if ties in ("target", "none") else "embedding"
    output = "output_embedding" if ties in ("input", "none") else "embedding"
    for layer, name, count in (
        (spec.encoder.embeddings[0], source, num_sources),
        (spec.decoder.embeddings, "embedding", num_targets),
        (spec.decoder.projection, output, num_targets),
    ):
        # Without PAD, which no search here can find either.
        layer.weight = weights.take(f"{name}/embedding", 1 + count, D)[EOS:]
    if hparams.logit_bias:
        bias = weights.take(f"{output}/logit_bias", 1 + num_targets)
        spec.decoder.projection.bias = bias[EOS:]


def _fill_stack(
    stack: "model_spec.LayerSpec",
    name: str,
    hparams: HParams,
    weights: _Weights,
) -> None:
    """Gives the encoder or the decoder its positions and layers."""
    stack.position_encodings.encodings = _positions(hparams, weights, name)
    for n, layer in enumerate(stack.layer):
        path = f"{name}/layer_{n}"
        _fill_attention(
            layer.self_attention,
            f"{path}/self_attention",
            hparams=hparams,
            weights=weights,
        )
        if name == "decoder":
            memory = f"{path}/memory_attention"
            _fill_attention(
                layer.attention, memory, hparams=hparams, weights=weights
            )
        _fill_feed_forward(
            layer.ffn, f"{path}/feed_forward", hparams=hparams, weights=weights
        )
    if hparams.norm == "pre":
        _fill_norm(
            stack.layer_norm,
            f"{name}/top_norm",
            hparams=hparams,
            weights=weights,
        )


def _positions(hparams: HParams, weights: _Weights, stack: str) -> np.ndarray:
    """Returns the encodings of positions, PE_LD; section 3.5."""
    L, D = num_positions(hparams), hparams.d_model
    if hparams.positions == "learned":
        return weights.take(f"{stack}/positions/table", L, D)
    encodings_LD = channels.encodings(L, D, hparams.positions == "marian")
    return encodings_LD.astype(weights.dtype)


def _fill_attention(
    spec: "attention_spec.MultiHeadAttentionSpec",
    path: str,
    hparams: HParams,
    weights: _Weights,
) -> None:
    """Gives an attention its matrices, in which rows are outputs."""
    part = _AttentionParts.of(path, hparams, weights)
    inputs = [part.query, part.key, part.value]
    # Self-attention has all three in one matrix.
    first = len(inputs) if len(spec.linear) == 2 else 1
    groups = [inputs[:first], inputs[first:], [part.output]]
    for linear, group in zip(spec.linear, filter(None, groups), strict=True):
        linear.weight = np.concatenate([each.matrix for each in group])
        if any(each.bias is not None for each in group):
            linear.bias = np.concatenate([each.any_bias() for each in group])
    # CTranslate2's own would be that of d_model / num_heads.
    spec.queries_scale = np.float32(hparams.d_k**-0.5)
    _fill_norm(
        spec.layer_norm, f"{path}_norm", hparams=hparams, weights=weights
    )


class _Projection(NamedTuple):
    """One of the four matrices of an attention."""

    matrix: np.ndarray  # [outputs, inputs]
    bias: np.ndarray | None  # [outputs]

    def any_bias(self) -> np.ndarray:
        """Returns the bias, or zeros."""
        if self.bias is not None:
            return self.bias
        return np.zeros(len(self.matrix), self.matrix.dtype)


class _AttentionParts(NamedTuple):
    """The matrices of an attention, all heads of one depth."""

    query: _Projection
    key: _Projection
    value: _Projection
    output: _Projection

    @classmethod
    def of(
        cls, path: str, hparams: HParams, weights: _Weights
    ) -> "_AttentionParts":
        """Returns those below `path`, with heads padded with zeros."""
        D, H = hparams.d_model, hparams.num_heads
        depth = max(hparams.d_k, hparams.d_v)

        def take(name, *shape):
            return weights.take(f"{path}/{name}", *shape)

        def projection(name, head_depth):
            matrix = take(name, D, H * head_depth).T
            return _filled_up(matrix, H, depth)

        query_bias = output_bias = None
        if hparams.attention_bias:
            query_bias = take("query_bias", H * hparams.d_k)
            query_bias = _filled_up(query_bias, H, depth)
            output_bias = take("output_bias", D)
        output = _filled_up(take("output", H * hparams.d_v, D), H, depth).T
        return cls(
            query=_Projection(projection("query", hparams.d_k), query_bias),
            key=_Projection(projection("key", hparams.d_k), None),
            value=_Projection(projection("value", hparams.d_v), None),
            output=_Projection(output, output_bias),
        )


def _filled_up(heads: np.ndarray, num_heads: int, depth: int) -> np.ndarray:
    """Returns rows of heads [H K, ...] as [H depth, ...], padded with zeros.

    >>> _filled_up(np.array([1, 2, 3, 4]), num_heads=2, depth=3).tolist()
    [1, 2, 0, 3, 4, 0]

    Args:
        heads: the rows of each head, one head below another.
        num_heads: H.
        depth: at least K.
    """
    split = heads.reshape(num_heads, -1, *heads.shape[1:])
    missing = depth - split.shape[1]
    widths = [(0, 0), (0, missing)] + [(0, 0)] * (heads.ndim - 1)
    return np.pad(split, widths).reshape(-1, *heads.shape[1:])


def _fill_feed_forward(
    spec: "transformer_spec.FeedForwardSpec",
    path: str,
    hparams: HParams,
    weights: _Weights,
) -> None:
    D, F = hparams.d_model, hparams.d_ff
    for linear, name, inputs, outputs in (
        (spec.linear_0, "hidden", D, F),
        (spec.linear_1, "output", F, D),
    ):
        kernel = weights.take(f"{path}/{name}/kernel", inputs, outputs)
        linear.weight = np.ascontiguousarray(kernel.T)
        linear.bias = weights.take(f"{path}/{name}/bias", outputs)
    _fill_norm(
        spec.layer_norm, f"{path}_norm", hparams=hparams, weights=weights
    )


def _fill_norm(
    spec: "model_spec.LayerSpec",
    path: str,
    hparams: HParams,
    weights: _Weights,
) -> None:
    spec.gamma = weights.take(f"{path}/gamma", hparams.d_model)
    spec.beta = weights.take(f"{path}/beta", hparams.d_model)


def _write_beside(
    model: PortableModel,
    folder: pathlib.Path,
    quantization: str | None,
    metadata: Mapping[str, Any],
) -> None:
    """Writes what CTranslate2 does not read: vocabularies and a README."""
    model.vocabulary.save_in(folder)
    values = {
        "hparams": dataclasses.asdict(model.hparams),
        "quantization": quantization,
        "splitting": model.splitting or {},
        "vocabulary_sha256": model.vocabulary.sha256,
        **metadata,
    }
    text = json.dumps(values, indent=2) + "\n"
    (folder / METADATA).write_text(text, "utf-8")
    readme = _readme(model.hparams, quantization, model.vocabulary)
    (folder / "README.md").write_text(readme, "utf-8")


def _readme(
    hparams: HParams, quantization: str | None, vocabulary: Vocabulary
) -> str:
    target, *source = vocabulary.sides()
    extra = hparams.max_extra_length
    return _README.format(
        source=source[0] if source else target,
        target=target,
        weights=quantization or "float32",
        max_length=hparams.max_length,
        most_pieces=hparams.max_length - 1,
        extra=extra,
        beam=hparams.beam_width,
        alpha=f"{hparams.length_penalty:g}",
        nearest=f"{nearest_exponent(hparams.length_penalty):g}",
        positions=num_positions(hparams),
    )


_README = """\
# A translation model for CTranslate2

Written by t2t_lite. The weights are kept in {weights}.

```python
import ctranslate2
import sentencepiece

source = sentencepiece.SentencePieceProcessor("{source}")
target = sentencepiece.SentencePieceProcessor("{target}")
translator = ctranslate2.Translator(".")
pieces = source.encode(["A dog runs ."], out_type=str)
results = translator.translate_batch(
    pieces, beam_size={beam}, max_decoding_length={extra} + len(pieces[0]) + 1
)
print(target.decode([result.hypotheses[0] for result in results]))
```

- Pieces are given without `</s>`, which is added, and come back without it.
- A source may have {most_pieces} pieces; with `</s>` it was trained on up to
  {max_length}. Source and target have at most {positions} positions.
- The search of t2t_lite gives a sentence at most {extra} tokens more than its
  source has, `</s>` included: `max_decoding_length`, which is one number for
  all sentences of a call.
- **Length penalty.** The paper divides log probabilities by
  ((5 + length) / 6)^{alpha} in this model's settings, and CTranslate2 by
  length^`length_penalty`. At `length_penalty=0` both score alike. For
  outputs of some 25 tokens `length_penalty={nearest}` comes nearest. To have
  the paper's own, ask for `num_hypotheses={beam}`, `length_penalty=0` and
  `return_scores=True`, divide each score by ((5 + length) / 6)^{alpha}, where
  the length counts `</s>`, and take the best.
- `metadata.json` has the settings of the model.
"""
