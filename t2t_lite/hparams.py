"""The settings of a model and its training, and the presets of the paper."""

import dataclasses
import difflib
import math
import re
import types
import typing
from collections.abc import Iterable, Iterator
from typing import Any

from t2t_lite.errors import MOST, InputError, program


@dataclasses.dataclass(frozen=True)
class HParams:
    """Everything that decides what a run computes.

    The defaults are the paper's base model (Table 3, first row). Lengths count
    tokens including the end-of-sentence token.

    Raises:
        InputError: a value is impossible; the message says what is allowed.
    """

    # The model, section 3.
    num_layers: int = 6
    num_decoder_layers: int = 0  # 0 for as many as in the encoder
    d_model: int = 512
    d_ff: int = 2048
    num_heads: int = 8
    d_k: int = 64
    d_v: int = 64
    # "learned", Table 3 (E), or "marian": wavelengths up to exactly 10000.
    positions: str = "sinusoidal"
    learned_positions: int = 512  # rows of the table of learned positions
    # How many positions around each one self-attention reaches, in the decoder
    # only those of them that are past; 0 for all. Table 1, "restricted": r.
    attention_window: int = 0
    # What models of other programs have and the paper's does not.
    norm: str = "post"  # or "pre": before each sub-layer, and after each stack
    norm_epsilon: float = 1e-6  # The paper does not say.
    activation: str = "relu"  # or "swish" or "gelu"
    attention_bias: bool = False  # on queries and outputs
    logit_bias: bool = False
    # Source, target and output share one matrix; "target": the last two do;
    # "input": the first two; "none".
    tied_embeddings: str = "all"
    embedding_scale: float = 0.0  # 0 for sqrt(d_model)
    decoder_start: str = "eos"  # or "zeros": its first input is a zero vector
    # Regularization, section 5.4.
    dropout: float = 0.1
    attention_dropout: float = 0.0
    relu_dropout: float = 0.0
    label_smoothing: float = 0.1
    # Not in the paper: the weight of a second loss, which teaches one head of
    # the decoder which words stand for which; 0 for none.
    guided_alignment: float = 0.0
    # Vocabulary, section 5.1.
    vocabulary_type: str = "bpe"  # or "unigram", word-piece-like
    vocabulary_size: int = 37_000
    # Comma-separated words, each of them one id wherever it begins a line or
    # follows a space: tags such as <bt>, for back-translated text.
    reserved_symbols: str = ""
    # Not in the paper: training text is tokenized anew for each epoch. BPE
    # drops each possible merge with this probability, before every merge; for
    # unigram it is Kudo's alpha, and the smaller it is, the more segmentations
    # vary. 0 for never.
    subword_sampling: float = 0.0
    # Batches, section 5.1.
    tokens_per_batch: int = 25_000  # of source, and as many of target
    max_length: int = 256  # longer pairs are dropped from training
    num_buckets: int = 24  # distinct shapes of batches
    # Optimizer and schedule, section 5.3.
    learning_rate_scale: float = 1.0
    warmup_steps: int = 4000
    # Not in the paper: the rate falls to 0 over so many updates at the end, or
    # over all updates if there are fewer.
    cooldown_steps: int = 0
    adam_beta1: float = 0.9
    adam_beta2: float = 0.98
    adam_epsilon: float = 1e-9
    seed: int = 1
    steps: int = 100_000
    # Inference, section 6.1.
    average_last: int = 5
    save_every_steps: int = 0  # the spacing of checkpoints; 0: by minutes
    beam_width: int = 4
    length_penalty: float = 0.6
    max_extra_length: int = 50
    # What the model learns.
    task: str = "translation"  # or "parsing", section 6.3
    # Parsing: whether words get only tags that training has shown for them.
    tag_dictionary: bool = False

    def __post_init__(self) -> None:
        for field in dataclasses.fields(self):
            value = getattr(self, field.name)
            if field.type is float and type(value) is int:
                object.__setattr__(self, field.name, float(value))
            elif type(value) is not field.type:
                raise InputError(
                    f"{field.name} must be of type {field.type.__name__}; "
                    f"received {value!r}"
                )
        for rule, holds in self._rules():
            if not holds:
                name = rule.split()[0]
                received = getattr(self, name)
                raise InputError(f"{rule}; received {name}={received!r}")

    @property
    def decoder_layers(self) -> int:
        """How many layers the decoder has."""
        return self.num_decoder_layers or self.num_layers

    @property
    def is_guided(self) -> bool:
        """Whether a head of the decoder learns the links of words."""
        return self.guided_alignment > 0

    @property
    def reserved(self) -> tuple[str, ...]:
        """The `reserved_symbols`, one by one."""
        symbols = self.reserved_symbols
        return tuple(symbols.split(",")) if symbols else ()

    def _rules(self):
        """Yields (rule, whether it holds); a field's name begins a rule."""
        for name in _AT_LEAST_ONE:
            yield f"{name} must be at least 1", getattr(self, name) >= 1
        for name in _AT_LEAST_ZERO:
            yield f"{name} must be at least 0", getattr(self, name) >= 0
        for name in _BELOW_ONE:
            yield f"{name} must be in [0, 1)", 0 <= getattr(self, name) < 1
        for name, choices in _CHOICES.items():
            allowed = " or ".join(choices)
            yield f"{name} must be {allowed}", getattr(self, name) in choices
        yield (
            "reserved_symbols must be different words separated by commas, and "
            "none of SentencePiece's own symbols, such as <unk>",
            len(set(self.reserved)) == len(self.reserved)
            and not any(map(_NO_SYMBOL.search, self.reserved)),
        )
        for field in dataclasses.fields(self):
            if field.type is int and field.name != "seed":
                is_small = getattr(self, field.name) <= MOST
                yield f"{field.name} must be at most {MOST:,}", is_small
        # NumPy's generator takes no more.
        yield "seed must be below 2^32", self.seed < 2**32
        yield (
            "d_model must be even, for its sines and cosines",
            self.d_model % 2 == 0,
        )
        yield (
            "attention_window must be 0 or odd: a position, and equally many "
            "on each side",
            self.attention_window == 0 or self.attention_window % 2 == 1,
        )
        yield (
            f"tokens_per_batch must be at least max_length={self.max_length}",
            self.tokens_per_batch >= self.max_length,
        )
        yield from length_penalty_rules(self.length_penalty)
        yield (
            "learning_rate_scale must be above 0",
            self.learning_rate_scale > 0,
        )
        if self.positions == "learned":
            yield (
                "learned_positions must be at least "
                f"max_length={self.max_length}",
                self.learned_positions >= self.max_length,
            )
        yield (
            "max_length must be at least 2: a token, and the end of sentence",
            self.max_length >= 2,
        )
        yield "norm_epsilon must be above 0", self.norm_epsilon > 0
        for field in dataclasses.fields(self):
            if field.type is float:
                is_finite = math.isfinite(getattr(self, field.name))
                yield f"{field.name} must be finite", is_finite
        yield (
            "learning_rate_scale must be at most 1e+38, which float32 can hold",
            self.learning_rate_scale <= 1e38,
        )


def length_penalty_rules(alpha: float) -> Iterator[tuple[str, bool]]:
    """Yields (what must hold of the paper's alpha, whether it does)."""
    yield "length_penalty must be finite", math.isfinite(alpha)
    yield "length_penalty must be at least 0", alpha >= 0
    yield (
        f"length_penalty must be at most {_MOST_LENGTH_PENALTY}, or float32 "
        "cannot hold the penalty of a long output",
        alpha <= _MOST_LENGTH_PENALTY,
    )


# ((5 + 10,000) / 6) ^ 10 is 2e32; float32 ends at 3e38.
_MOST_LENGTH_PENALTY = 10
# Blank, with a space or SentencePiece's sign for one, or a symbol of its own.
_NO_SYMBOL = re.compile(r"^$|\s|\u2581|^<(unk|s|/s|pad|0x..)>$|^<<.*>>$")
_AT_LEAST_ONE = (
    "num_layers",
    "d_model",
    "d_ff",
    "num_heads",
    "d_k",
    "d_v",
    "learned_positions",
    "vocabulary_size",
    "tokens_per_batch",
    "num_buckets",
    "warmup_steps",
    "steps",
    "average_last",
    "beam_width",
)
_AT_LEAST_ZERO = (
    "cooldown_steps",
    "num_decoder_layers",
    "attention_window",
    "guided_alignment",
    "adam_epsilon",
    "embedding_scale",
    "seed",
    "save_every_steps",
    "max_extra_length",
)
_BELOW_ONE = (
    "dropout",
    "attention_dropout",
    "relu_dropout",
    "label_smoothing",
    "subword_sampling",
    "adam_beta1",
    "adam_beta2",
)
_CHOICES = {
    "positions": ("sinusoidal", "learned", "marian"),
    "norm": ("post", "pre"),
    "activation": ("relu", "swish", "gelu"),
    "tied_embeddings": ("all", "target", "input", "none"),
    "decoder_start": ("eos", "zeros"),
    "vocabulary_type": ("bpe", "unigram"),
    "task": ("translation", "parsing"),
}

# What a later run on the same model directory may change: how long and how fast
# it trains, and how it searches; not what it has learned from.
MAY_CHANGE = frozenset(
    {
        "steps",
        "average_last",
        "save_every_steps",
        "beam_width",
        "length_penalty",
        "max_extra_length",
        "learning_rate_scale",
        "warmup_steps",
        "cooldown_steps",
    }
)

_BASE = HParams()
_BIG = HParams(
    d_model=1024,
    d_ff=4096,
    num_heads=16,
    dropout=0.3,
    steps=300_000,
    average_last=20,
)
_EN_FR = {"vocabulary_type": "unigram", "vocabulary_size": 32_000}
# Section 6.3 gives layers, d_model, vocabulary and inference, and the rest is
# base's: heads divide d_model, as in Table 3. Dropout and learning rates were
# chosen on section 22 but are not given: dropout and warm-up are
# tensor2tensor's for the WSJ, and the rate is base's.
_PARSING = HParams(
    task="parsing",
    num_layers=4,
    d_model=1024,
    d_k=128,
    d_v=128,
    dropout=0.2,
    attention_dropout=0.2,
    vocabulary_size=16_000,
    max_length=512,
    warmup_steps=16_000,
    beam_width=21,
    length_penalty=0.3,
    max_extra_length=300,
)


def _variation(**changes):
    """Returns the base model with some settings changed: a row of Table 3.

    Checkpoints of these are not averaged, section 6.2.
    """
    return dataclasses.replace(_BASE, average_last=1, **changes)


# Presets named like one in tensor2tensor, except transformer_tiny, have the
# paper's settings; tensor2tensor's later ones differ by pre-norm, beta2 0.997,
# 8000 steps of warm-up, twice the rate, and dropout 0.1 on attention weights
# and after the ReLU.
_PRESETS = {
    # For the embedded corpus: takes minutes on two cores.
    "transformer_tiny": HParams(
        num_layers=2,
        d_model=128,
        d_ff=512,
        num_heads=4,
        d_k=32,
        d_v=32,
        # With so many pairs, each is seen only a few times: none is memorized.
        dropout=0.0,
        label_smoothing=0.0,
        vocabulary_size=3000,
        tokens_per_batch=2048,
        max_length=128,
        learning_rate_scale=0.6,
        warmup_steps=400,
        cooldown_steps=1000,
        steps=2000,
        average_last=3,
        # By minutes, there would be few, and their number differs by machine.
        save_every_steps=200,
    ),
    # For Multi30k and the like: takes about an hour on two cores that are fast
    # in bfloat16. Sizes, batches and rate are those of Wu et al. 2021.
    "transformer_multi30k": HParams(
        num_layers=4,
        d_model=128,
        d_ff=256,
        num_heads=4,
        d_k=32,
        d_v=32,
        norm="pre",
        dropout=0.3,
        vocabulary_size=10_000,
        tokens_per_batch=8192,
        max_length=128,
        learning_rate_scale=2.53,
        warmup_steps=2000,
        cooldown_steps=3500,
        steps=7000,
        average_last=10,
        save_every_steps=100,
        beam_width=5,
        length_penalty=1.0,
    ),
    "transformer_base": _BASE,
    "transformer_base_en_fr": dataclasses.replace(_BASE, **_EN_FR),
    "transformer_big": _BIG,
    "transformer_big_en_fr": dataclasses.replace(_BIG, dropout=0.1, **_EN_FR),
    # Table 3 (A), heads at the same amount of computation.
    "transformer_h1": _variation(num_heads=1, d_k=512, d_v=512),
    "transformer_h4": _variation(num_heads=4, d_k=128, d_v=128),
    "transformer_h16": _variation(num_heads=16, d_k=32, d_v=32),
    "transformer_h32": _variation(num_heads=32, d_k=16, d_v=16),
    # (B), the depth of keys.
    "transformer_k16": _variation(d_k=16),
    "transformer_k32": _variation(d_k=32),
    # (C), sizes.
    "transformer_l2": _variation(num_layers=2),
    "transformer_l4": _variation(num_layers=4),
    "transformer_l8": _variation(num_layers=8),
    "transformer_hs256": _variation(d_model=256, d_k=32, d_v=32),
    "transformer_hs1024": _variation(d_model=1024, d_k=128, d_v=128),
    "transformer_ff1024": _variation(d_ff=1024),
    "transformer_ff4096": _variation(d_ff=4096),
    # (D), regularization.
    "transformer_dr0": _variation(dropout=0.0),
    "transformer_dr2": _variation(dropout=0.2),
    "transformer_ls0": _variation(label_smoothing=0.0),
    "transformer_ls2": _variation(label_smoothing=0.2),
    # (E), positions.
    "transformer_learned": _variation(positions="learned"),
    # Table 4: the WSJ only, and with automatically parsed sentences.
    "transformer_parsing": _PARSING,
    "transformer_parsing_semi_supervised": dataclasses.replace(
        _PARSING, vocabulary_size=32_000
    ),
    # For treebanks of some 30,000 sentences: takes about an hour on two cores.
    # In so few epochs, dropout and smoothing cost more than they gain, and a
    # parser loses its place now and then: tags bring it back.
    "transformer_parsing_small": HParams(
        task="parsing",
        tag_dictionary=True,
        num_layers=3,
        d_model=256,
        d_ff=1024,
        num_heads=4,
        norm="pre",
        dropout=0.0,
        label_smoothing=0.0,
        vocabulary_size=16_000,
        tokens_per_batch=1536,
        max_length=200,
        learning_rate_scale=0.7,
        warmup_steps=800,
        cooldown_steps=2500,
        steps=5000,
        save_every_steps=100,
        beam_width=10,
        length_penalty=0.3,
        max_extra_length=300,
    ),
}
PRESETS = types.MappingProxyType(_PRESETS)


def preset(name: str) -> HParams:
    """Returns the HParams called `name`.

    Raises:
        InputError: there is none; the message suggests a similar name, if any.
    """
    if name not in PRESETS:
        all_presets = f"{program('train')} --help lists them"
        raise InputError(
            f"unknown preset {name!r}"
            f"{_nearest(name, PRESETS) or f'; {all_presets}'}"
        )
    return PRESETS[name]


def override(hparams: HParams, assignments: Iterable[str]) -> HParams:
    """Returns `hparams` with fields replaced.

    Args:
        hparams: HParams.
        assignments: strings "field=value"; a later one wins.

    Raises:
        InputError: a field is unknown (the message suggests a similar one, if
            any), or a value is not of the field's type.

    >>> override(HParams(), ["d_ff=1024", "dropout=0"]).d_ff
    1024
    """
    kinds = typing.get_type_hints(HParams)
    changes = {}
    for assignment in assignments:
        name, equals, text = assignment.partition("=")
        if not equals:
            raise InputError(
                f"an override must look like field=value; received "
                f"{assignment!r}"
            )
        if name not in kinds:
            near = (
                _nearest(name, kinds) or f"; the fields are {', '.join(kinds)}"
            )
            raise InputError(f"unknown field {name!r}{near}")
        try:
            changes[name] = _parsed(kinds[name], text)
        except ValueError:
            remedy = ": give one field at a time" if "=" in text else ""
            raise InputError(
                f"{name} must be of type {kinds[name].__name__}; received "
                f"{text!r}{remedy}"
            ) from None
    return dataclasses.replace(hparams, **changes)


def _parsed(kind, text):
    if kind is not bool:
        return kind(text)
    if text.lower() not in ("true", "false"):
        raise ValueError("neither true nor false")
    return text.lower() == "true"


def from_dict(values: dict[str, Any]) -> HParams:
    """Returns the HParams that `dataclasses.asdict` gave as `values`.

    Raises:
        InputError: there are fields that this version does not know.
    """
    if not isinstance(values, dict):
        raise InputError(f"hparams must hold fields; received {values!r}")
    require_fields(HParams, values)
    return HParams(**values)


def require_fields(kind: type, values: dict[str, Any]) -> None:
    """Checks that a dataclass can be made from a dict, by its fields' names.

    Raises:
        InputError: a field is unknown to this version, or one is missing.
    """
    fields = {field.name: field for field in dataclasses.fields(kind)}
    for name in values:
        if name not in fields:
            raise InputError(
                f"unknown field {name!r}{_nearest(name, fields)}: were these "
                "settings saved by another version?"
            )
    for name, field in fields.items():
        if field.default is dataclasses.MISSING and name not in values:
            raise InputError(f"the field {name!r} is missing")


def _nearest(name, names):
    close = difflib.get_close_matches(name, names, n=1)
    return f": did you mean {close[0]!r}?" if close else ""
