"""The arrays of Marian's models as the weights of models of this package.

What is stored in another form here is the same in exact arithmetic:

- the bias of keys adds the same to all logits of a query, which the softmax
  cancels; the bias of values goes through W^O into the output's, because the
  weights of attention sum to 1;
- the gelu of Marian before 1.12.3 is x sigmoid(1.702 x): swish with W_1 and b_1
  times 1.702 and W_2 divided by it;
- an attention without a projection has the identity for W^O;
- layers that share their arrays get a copy each.

Source: github.com/marian-nmt/marian-dev, version 1.12, src/models/transformer.h
and src/layers/.
"""

import re
import reprlib
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from t2t_lite.english import counted
from t2t_lite.errors import MOST, InputError
from t2t_lite.formats import channels
from t2t_lite.hparams import HParams

_NORM_EPSILON = 1e-6  # That of Marian's layerNorm in a layer.
_GELU_SCALE = 1.702
# Before this version, gelu was approximated by swish.
_EXACT_GELU = (1, 12, 3)
# Before this version, self-attention in pre-norm models made keys and values
# from vectors that were not normalized.
_PRE_NORM = (1, 11, 0)
_NO_PAD = -100.0  # PAD's logit: Marian's softmax has no PAD.

# What options must be: (what Marian assumes if absent, what is allowed).
_CHOICES = {
    "type": ("amun", ("transformer",)),
    "transformer-decoder-autoreg": ("self-attention", ("self-attention",)),
    "transformer-ffn-activation": ("swish", ("relu", "swish", "gelu")),
    "transformer-ffn-depth": (2, (2,)),
    "transformer-decoder-ffn-depth": (0, (0, 2)),
    "transformer-attention-mask": ("default", ("default",)),
    "transformer-postprocess-emb": ("d", ("d", "")),
    "factors-combine": ("sum", ("sum",)),
}
# Options that must be absent, false, 0 or empty.
_OFF = (
    "right-left",
    "ulr",
    "input-join-fields",
    "input-reorder",
    "lemma-dim-emb",
    "lemma-dependency",
    "factors-dim-emb",
)
# Options of transformers that may be anything: they are read here, or matter
# only to training or to layers that are refused. The options for trained
# positions have no effect in Marian's transformer; if there is a table of them
# after all, it is refused, because no array is silently left out.
_KNOWN = re.compile(
    r"transformer-(heads|no-projection|rnn-projection|dim-ffn|decoder-dim-ffn"
    r"|ffn-depth|decoder-ffn-depth|ffn-activation|dim-aan|aan-.*|preprocess"
    r"|postprocess(-emb|-top)?|decoder-autoreg|tied-layers|attention-mask"
    r"|guided-alignment-layer|train-positions|train-position-embeddings"
    r"|depth-scaling|dropout.*)"
)
# Before and after each sub-layer, and after each stack: n is a layer
# normalization and a the addition. Dropout (d) does nothing here.
_NORM_OPTIONS = {
    "transformer-preprocess": "",
    "transformer-postprocess": "dan",
    "transformer-postprocess-top": "",
}
_NORMS = {("", "an", ""): "post", ("n", "a", "n"): "pre"}
# Whether the source, and the output, share the target's matrix.
_TIED = {
    (True, True): "all",
    (False, True): "target",
    (True, False): "input",
    (False, False): "none",
}


def convert(
    options: Mapping[str, Any],
    arrays: Mapping[str, np.ndarray],
    source_order: Sequence[int] | None = None,
    target_order: Sequence[int] | None = None,
) -> tuple[HParams, dict[str, np.ndarray]]:
    """Returns the settings and the weights of a model of Marian.

    Args:
        options: what special:model.yml says.
        arrays: the arrays of the .npz by name.
        source_order: Marian's ids of source pieces in the order of this
            package's, from EOS on; None for all rows as they are.
        target_order: the same for target pieces.

    Returns:
        (HParams, float32 arrays by their names in a checkpoint).

    Raises:
        InputError: this package cannot represent such a model; or an array is
            missing, has another shape, or has no use here.
    """
    _check_options(options)
    hparams = _hparams(options)
    model = _Model(options, arrays, hparams)
    weights = _embeddings(model, source_order, target_order)
    stacks = {
        "encoder": range(1, hparams.num_layers + 1),
        "decoder": _decoder_layers(options),
    }
    for stack, numbers in stacks.items():
        for n, number in enumerate(numbers):
            name = f"transformer/{stack}/layer_{n}"
            weights |= _layer(model, name, f"{stack}_l{number}")
        if hparams.norm == "pre":
            name = f"transformer/{stack}/top_norm"
            weights |= _norm(model, name, prefix=f"{stack}_top", suffix="")
    model.require_all_used()
    return hparams, channels.interleave(weights, hparams.d_model)


class _Model:
    """Arrays, which must all be used, and the model that they are to become."""

    def __init__(
        self,
        options: Mapping[str, Any],
        arrays: Mapping[str, np.ndarray],
        hparams: HParams,
    ):
        self.options = options
        self.hparams = hparams
        self._arrays = arrays
        self._used = set()

    def __contains__(self, name: str) -> bool:
        return name in self._arrays

    def take(self, name: str, *shape: int | None) -> np.ndarray:
        """Returns the array `name` of this shape, as float32.

        Args:
            name: Marian's.
            *shape: lengths; None for any. Marian's vectors are [1, length].
        """
        array = self._arrays.get(name)
        if array is None:
            raise InputError(
                f"a model with these options must have the array {name}; this "
                "one does not"
            )
        self._used.add(name)
        is_row = len(shape) == 1 and array.ndim == 2 and len(array) == 1
        values = array[0] if is_row else array
        fits = len(shape) == values.ndim and all(
            expected in (None, length)
            for expected, length in zip(shape, values.shape, strict=True)
        )
        if not fits or array.dtype.kind != "f":
            expected = ", ".join("any" if n is None else str(n) for n in shape)
            raise InputError(
                f"{name} must be floats of shape [{expected}]; received "
                f"{array.dtype} {list(array.shape)}"
            )
        if not np.isfinite(values).all():
            raise InputError(f"{name} must be finite numbers; some are not")
        return values.astype(np.float32)

    def require_all_used(self) -> None:
        """Raises InputError if there is an array that nothing has taken."""
        unused = [
            name
            for name in self._arrays
            if name not in self._used and not name.startswith("special:")
        ]
        if unused:
            raise InputError(
                f"cannot import {counted(len(unused), 'array')} of the model, "
                f"starting with {unused[0]}: this kind of model is not "
                "supported"
            )


def _option(options: Mapping[str, Any], name: str, default: Any) -> Any:
    """Returns an option; Marian's `default` if it is absent or empty."""
    value = options.get(name)
    return default if value is None else value


def _refuse(name: str, value: Any, rule: str) -> None:
    raise InputError(
        f"{rule}; received {name}={reprlib.repr(value)}: such Marian models "
        "cannot be imported"
    )


def _check_options(options: Mapping[str, Any]) -> None:
    """Raises InputError naming the option if a model cannot be represented."""
    for name, (default, allowed) in _CHOICES.items():
        value = _option(options, name, default)
        if value not in allowed:
            choices = " or ".join(str(choice) for choice in allowed)
            _refuse(name, value, f"{name} must be {choices}")
    others = [
        name
        for name in options
        if name.startswith(("transformer-", "char-"))
        and not _KNOWN.fullmatch(name)
    ]
    for name in (*_OFF, *others):
        if options.get(name):
            _refuse(name, options[name], f"{name} must be off")
    sides = _option(options, "dim-vocabs", [0, 0])
    if not isinstance(sides, list) or len(sides) != 2:
        _refuse("dim-vocabs", sides, "there must be one source and one target")
    kinds = _option(options, "input-types", [])
    if kinds not in ([], ["sequence"] * 2):
        _refuse("input-types", kinds, "all inputs must be of type sequence")


def _version(options: Mapping[str, Any]) -> tuple[int, ...]:
    """Returns which version of Marian wrote a model, such as (1, 12, 0)."""
    match = re.match(r"v?(\d+)\.(\d+)\.(\d+)", str(options.get("version", "")))
    if match is None:
        raise InputError(
            "what this model computes depends on the Marian version that wrote "
            f"it; received version={options.get('version')!r}, which is not a "
            "version: such models cannot be imported"
        )
    return tuple(map(int, match.groups()))


def _hparams(options: Mapping[str, Any]) -> HParams:
    """Returns the settings of a model whose options this package can follow."""
    D = _size(options, "dim-emb", 512)
    H = _size(options, "transformer-heads", 8)
    d_ff = _size(options, "transformer-dim-ffn", 2048)
    decoder_d_ff = _option(options, "transformer-decoder-dim-ffn", 0)
    if decoder_d_ff not in (0, d_ff):
        rule = f"encoder and decoder must both have d_ff {d_ff}"
        _refuse("transformer-decoder-dim-ffn", decoder_d_ff, rule)
    if D % 2:
        _refuse("dim-emb", D, "dim-emb must be even")
    if D % H:
        rule = f"transformer-heads must divide dim-emb={D}"
        _refuse("transformer-heads", H, rule)
    num_layers = _size(options, "enc-depth", 1)
    num_decoder_layers = _size(options, "dec-depth", 1)
    is_same = num_decoder_layers == num_layers
    return HParams(
        num_layers=num_layers,
        num_decoder_layers=0 if is_same else num_decoder_layers,
        d_model=D,
        d_ff=d_ff,
        num_heads=H,
        d_k=D // H,
        d_v=D // H,
        positions="marian",
        norm=_norm_place(options),
        norm_epsilon=_NORM_EPSILON,
        activation="swish" if _is_old_gelu(options) else activation(options),
        attention_bias=True,
        logit_bias=True,
        tied_embeddings=_tied(options),
        decoder_start="zeros",
    )


def _size(options: Mapping[str, Any], name: str, default: int) -> int:
    value = _option(options, name, default)
    if type(value) is not int or not 1 <= value <= MOST:
        _refuse(name, value, f"{name} must be an integer, at least 1")
    return value


def activation(options: Mapping[str, Any]) -> str:
    return _option(options, "transformer-ffn-activation", "swish")


def _is_old_gelu(options: Mapping[str, Any]) -> bool:
    """Returns whether the activation is x sigmoid(1.702 x)."""
    is_gelu = activation(options) == "gelu"
    return is_gelu and _version(options) < _EXACT_GELU


def _norm_place(options: Mapping[str, Any]) -> str:
    """Returns "post" or "pre"."""
    received = {
        name: str(_option(options, name, default))
        for name, default in _NORM_OPTIONS.items()
    }
    steps = tuple(value.replace("d", "") for value in received.values())
    if steps not in _NORMS:
        values = ", ".join(f"{k}={v!r}" for k, v in received.items())
        raise InputError(
            "layers must be normalized after each (postprocess dan) or before "
            f"each (preprocess n, postprocess da, top n); received {values}: "
            "such Marian models cannot be imported"
        )
    place = _NORMS[steps]
    if place == "pre" and _version(options) < _PRE_NORM:
        rule = (
            "pre-norm models must come from Marian 1.11 or later: earlier "
            "versions did not normalize the keys and values of self-attention"
        )
        _refuse("version", options["version"], rule)
    return place


def _tied(options: Mapping[str, Any]) -> str:
    is_all = bool(options.get("tied-embeddings-all"))
    shares_source = is_all or bool(options.get("tied-embeddings-src"))
    shares_output = is_all or bool(options.get("tied-embeddings"))
    return _TIED[shares_source, shares_output]


def _decoder_layers(options: Mapping[str, Any]) -> list[int]:
    """Returns the numbers by which Marian names the decoder's layers."""
    num_layers = _size(options, "dec-depth", 1)
    tied = _option(options, "transformer-tied-layers", [])
    if not tied:
        return list(range(1, num_layers + 1))
    is_list = isinstance(tied, list) and len(tied) == num_layers
    if not is_list or not all(type(n) is int and n >= 1 for n in tied):
        rule = (
            "transformer-tied-layers must give a layer number, at least 1, for "
            f"each of the {num_layers} decoder layers"
        )
        _refuse("transformer-tied-layers", tied, rule)
    return tied


def _layer(model: _Model, name: str, prefix: str) -> dict[str, np.ndarray]:
    """Returns the weights of one layer.

    Args:
        model: _Model.
        name: of the layer here, such as transformer/encoder/layer_0.
        prefix: of its arrays' names there, such as encoder_l1.
    """
    suffix = "_pre" if model.hparams.norm == "pre" else ""
    attentions = {"self_attention": f"{prefix}_self"}
    if prefix.startswith("decoder"):
        attentions["memory_attention"] = f"{prefix}_context"
    weights = {}
    for sublayer, their in attentions.items():
        ours = f"{name}/{sublayer}"
        weights |= _attention(model, ours, their)
        weights |= _norm(
            model, f"{ours}_norm", prefix=f"{their}_Wo", suffix=suffix
        )
    ours, their = f"{name}/feed_forward", f"{prefix}_ffn"
    weights |= _feed_forward(model, ours, their)
    weights |= _norm(
        model, f"{ours}_norm", prefix=f"{their}_ffn", suffix=suffix
    )
    return weights


def _attention(model: _Model, name: str, prefix: str) -> dict[str, np.ndarray]:
    D = model.hparams.d_model
    model.take(f"{prefix}_bk", D)  # The softmax cancels it.
    value_bias_D = model.take(f"{prefix}_bv", D)
    if model.options.get("transformer-no-projection"):
        output_DD, output_bias_D = np.eye(D, dtype=np.float32), 0.0
    else:
        output_DD = model.take(f"{prefix}_Wo", D, D)
        output_bias_D = model.take(f"{prefix}_bo", D)
    through_D = np.float64(value_bias_D) @ output_DD
    return {
        f"{name}/query": model.take(f"{prefix}_Wq", D, D),
        f"{name}/key": model.take(f"{prefix}_Wk", D, D),
        f"{name}/value": model.take(f"{prefix}_Wv", D, D),
        f"{name}/output": output_DD,
        f"{name}/query_bias": model.take(f"{prefix}_bq", D),
        f"{name}/output_bias": np.float32(through_D + output_bias_D),
    }


def _feed_forward(
    model: _Model, name: str, prefix: str
) -> dict[str, np.ndarray]:
    D, F = model.hparams.d_model, model.hparams.d_ff
    scale = np.float32(_GELU_SCALE if _is_old_gelu(model.options) else 1.0)
    return {
        f"{name}/hidden/kernel": model.take(f"{prefix}_W1", D, F) * scale,
        f"{name}/hidden/bias": model.take(f"{prefix}_b1", F) * scale,
        f"{name}/output/kernel": model.take(f"{prefix}_W2", F, D) / scale,
        f"{name}/output/bias": model.take(f"{prefix}_b2", D),
    }


def _norm(
    model: _Model, name: str, prefix: str, suffix: str
) -> dict[str, np.ndarray]:
    D = model.hparams.d_model
    return {
        f"{name}/gamma": model.take(f"{prefix}_ln_scale{suffix}", D),
        f"{name}/beta": model.take(f"{prefix}_ln_bias{suffix}", D),
    }


def num_rows(arrays: Mapping[str, np.ndarray], side: str) -> int | None:
    """Returns how many ids "source" or "target" has in the model."""
    own = {"source": "encoder_Wemb", "target": "decoder_Wemb"}[side]
    for name in (own, "Wemb"):
        if name in arrays and arrays[name].ndim:
            return len(arrays[name])
    return None


def _embeddings(
    model: _Model,
    source_order: Sequence[int] | None,
    target_order: Sequence[int] | None,
) -> dict[str, np.ndarray]:
    """Returns the matrices of tokens, and the bias of the logits."""
    D, tied = model.hparams.d_model, model.hparams.tied_embeddings
    has_own_source = tied in ("target", "none")
    name = "decoder_Wemb" if has_own_source else "Wemb"
    matrix_VD = model.take(name, None, D)
    weights = {
        "transformer/embedding/embedding": _rows(name, matrix_VD, target_order)
    }
    if has_own_source:
        name = "encoder_Wemb"
        weights["transformer/source_embedding/embedding"] = _rows(
            name, model.take(name, None, D), source_order
        )
    elif source_order != target_order:
        raise InputError(
            "where source and target share a matrix, their vocabularies must "
            "have the same size and the same ids for </s> and <unk>; they "
            "differ"
        )
    output = "transformer/embedding"
    if tied in ("input", "none"):
        output = "transformer/output_embedding"
        name, output_VD = _output_matrix(model, D, len(matrix_VD))
        weights[f"{output}/embedding"] = _rows(name, output_VD, target_order)
    name, bias_V = "decoder_ff_logit_out_b", np.zeros(len(matrix_VD))
    if not model.options.get("output-omit-bias"):
        bias_V = model.take(name, len(matrix_VD))
    weights[f"{output}/logit_bias"] = np.float32(
        _rows(name, bias_V, order=target_order, pad=_NO_PAD)
    )
    return weights


def _output_matrix(
    model: _Model, d_model: int, size: int
) -> tuple[str, np.ndarray]:
    """Returns (name, pre-softmax [V, D]); old versions kept it transposed."""
    old, new = "decoder_ff_logit_out_W", "decoder_ff_logit_out_Wt"
    if old in model:
        return old, model.take(old, d_model, size).T
    return new, model.take(new, size, d_model)


def _rows(
    name: str, values: np.ndarray, order: Sequence[int] | None, pad: float = 0.0
) -> np.ndarray:
    """Returns the rows of ids in the order of this package, PAD's first."""
    order = range(len(values)) if order is None else order
    if len(order) != len(values):
        raise InputError(
            f"{name} must have a row for each piece of its vocabulary; there "
            f"are {counted(len(values), 'row')} and "
            f"{counted(len(order), 'piece')}"
        )
    return np.concatenate([np.full_like(values[:1], pad), values[list(order)]])
