"""The flags that choose a model, its weights, and how it searches."""

import functools
from typing import Any

from absl import flags, logging

from t2t_lite import hardware
from t2t_lite.errors import InputError, program
from t2t_lite.hparams import HParams

SEARCH = (
    "beam_width",
    "length_penalty",
    "max_extra_length",
    "tokens_at_once",
    "min_length",
    "no_repeat_ngram_size",
    "suppress",
    "suppress_pieces",
    "sample_top_k",
    "sample_top_p",
    "temperature",
    "seed",
)
SERVING = ("max_length", "attention_layer", "attention_head")
_WEIGHTS = ("model_dir", "checkpoint", "average_last")


def define(
    xla: bool | None = None,
    has_auto_precision: bool = True,
    is_required: bool = True,
    may_be_several: bool = False,
) -> None:
    """Defines the flags that choose a model, and how it searches.

    Args:
        xla: the default of --xla; None to let the device decide.
        has_auto_precision: whether this machine may choose the precision.
        is_required: whether there must be a model directory.
        may_be_several: whether several models may be given: the values of
            --model_dir and --checkpoint are then lists.
    """
    _define_weights(is_required, may_be_several)
    _define_precision(has_auto_precision, has_int8=True)
    default = " Default: on a GPU." if xla is None else ""
    flags.DEFINE_bool("xla", xla, f"Compile the search with XLA.{default}")
    flags.DEFINE_integer(
        "beam_width", None, "Width of the beam. Default: the model's."
    )
    flags.DEFINE_float(
        "length_penalty",
        None,
        "The paper's alpha; higher prefers longer output. Default: the "
        "model's.",
    )
    flags.DEFINE_integer(
        "max_extra_length",
        None,
        "How many tokens longer than its source an output may be. Default: "
        "the model's.",
    )
    flags.DEFINE_integer(
        "tokens_at_once",
        None,
        "How many source tokens are searched at once. Default: by the device's "
        "memory and cores.",
        lower_bound=1,
    )
    _define_constraints()
    _define_sampling()


def _define_constraints() -> None:
    flags.DEFINE_integer(
        "min_length",
        None,
        "Least number of tokens (not words) in the translation of each "
        "sentence.",
    )
    flags.DEFINE_integer(
        "no_repeat_ngram_size",
        None,
        "Leave out translations in which this many tokens in a row appear "
        "twice.",
    )
    flags.DEFINE_list(
        "suppress",
        None,
        "Words that must not appear in a translation, comma-separated.",
    )
    flags.DEFINE_list(
        "suppress_pieces",
        None,
        "Tokens of the vocabulary that must not appear; one that begins a word "
        "begins with U+2581.",
    )


def _define_sampling() -> None:
    flags.DEFINE_integer(
        "sample_top_k",
        None,
        "Draw translations at random, each token from this many of the "
        "likeliest.",
    )
    flags.DEFINE_float(
        "sample_top_p",
        None,
        "Draw translations at random, each token from the likeliest that have "
        "this share of the probability together; 1 for all.",
    )
    flags.DEFINE_float(
        "temperature",
        None,
        "With sampling: below 1 favors likely tokens, above 1 rare ones. "
        "Default: 1.",
    )
    flags.DEFINE_integer(
        "seed",
        None,
        "With sampling: another seed draws other translations. Default: 0.",
    )


def define_weights() -> None:
    """Defines the flags that choose a model, its weights and its precision."""
    _define_weights(is_required=True, may_be_several=False)
    _define_precision(has_auto=False, has_int8=False)


def _define_weights(is_required: bool, may_be_several: bool) -> None:
    if may_be_several:
        define = flags.DEFINE_multi_string
        more_models = " Given several times, these models translate together."
        more_checkpoints = (
            " Given several times: one per --model_dir, or several of a single "
            "--model_dir."
        )
    else:
        # Refused if given twice.
        define = functools.partial(flags.DEFINE_string, allow_overwrite=False)
        more_models = more_checkpoints = ""
    define(
        "model_dir",
        None,
        f"{'Required: the' if is_required else 'The'} directory that "
        f"{program('train')} or {program('import_model')} wrote.{more_models}",
    )
    if is_required:
        flags.mark_flag_as_required("model_dir")
    define(
        "checkpoint",
        "last",
        "Which weights to use: last, best, averaged, or the path of a "
        f"checkpoint.{more_checkpoints}",
    )
    flags.DEFINE_integer(
        "average_last",
        1,
        "Use the mean of the weights of this many of the last checkpoints.",
        lower_bound=1,
    )


def _define_precision(has_auto: bool, has_int8: bool) -> None:
    precisions = [*hardware.PRECISIONS]
    help_text = "Precision of the computation; softmax and scores stay float32."
    if has_int8:
        precisions = [*hardware.SEARCH_PRECISIONS]
        help_text += (
            " int8: of the products with weights in each step of a search, "
            "with --xla on a CPU; the rest is float32."
        )
    if has_auto:
        precisions.append("auto")
        help_text += " auto: bfloat16 if the machine is faster with it."
    flags.DEFINE_enum("precision", "float32", precisions, help_text)


def define_devices() -> None:
    """Defines the flag that says on how many devices a model searches."""
    flags.DEFINE_string(
        "devices",
        "all",
        "How many GPUs search in parallel: a number, or all. Without a GPU, "
        "the CPU is used.",
    )
    flags.register_validator(
        "devices",
        lambda value: value == "all" or (value.isdecimal() and int(value) > 0),
        "must be all, or a number above 0",
    )


def define_sentences() -> None:
    """Defines the flag that says which lines are split into sentences."""
    flags.DEFINE_enum(
        "sentences",
        "auto",
        ["auto", "split", "whole"],
        "Which lines are translated sentence by sentence. auto: lines of "
        "several sentences if the model was trained on single sentences, else "
        "lines longer than 99% of its training lines; split: every line; "
        "whole: only lines too long for the model.",
    )


def define_serving() -> None:
    """Defines the flags of a model that serves clients, SERVING."""
    flags.DEFINE_integer(
        "max_length",
        None,
        "Maximum number of tokens in a source, or in each sentence of it; "
        "longer ones are truncated. Default: the model's.",
    )
    flags.DEFINE_integer(
        "attention_layer",
        None,
        "Which decoder layer's attention translate_aligned returns, from 0. "
        "Default: the last; if --attention_head is not given either, the one "
        "used to align words.",
    )
    flags.DEFINE_integer(
        "attention_head",
        None,
        "Which head's attention translate_aligned returns, from 0. Default: "
        "the mean of all heads; if --attention_layer is not given either, the "
        "one used to align words.",
    )


def search_arguments() -> dict[str, Any]:
    """Returns the flags that say how to search."""
    return {name: flags.FLAGS[name].value for name in SEARCH}


def settle_precision(hparams: HParams, previous: str | None = None) -> None:
    """Puts the faster precision in place of --precision=auto.

    Args:
        hparams: those of the model.
        previous: the precision of the work that is resumed; None for new work.
    """
    if flags.FLAGS.precision == "auto":
        flags.FLAGS.precision = previous or hardware.faster_precision(
            hparams.d_model, hparams.d_ff, flags.FLAGS.xla
        )
        logging.info("Computing in %s.", flags.FLAGS.precision)


def chosen_weights() -> dict[str, Any]:
    """Returns the flags that say which weights of which model are meant."""
    return {name: flags.FLAGS[name].value for name in _WEIGHTS}


def checked() -> dict[str, Any]:
    """Returns what can be checked about a model and search before they load.

    Raises:
        InputError: --precision=int8 is given without --xla.
    """
    if flags.FLAGS.precision == "int8" and not flags.FLAGS.xla:
        raise InputError(
            "--precision=int8 is for searches that XLA compiles: give --xla too"
        )
    return chosen_weights() | search_arguments()


def weights_and_precision() -> dict[str, Any]:
    """Returns the flags that choose weights, as a Translator's arguments."""
    return chosen_weights() | {"precision": flags.FLAGS.precision}


def translator_arguments(*others: str) -> dict[str, Any]:
    """Returns the flags of a model and search, as a Translator's arguments.

    Args:
        *others: names of more flags.
    """
    more = {name: flags.FLAGS[name].value for name in ("xla", *others)}
    return weights_and_precision() | search_arguments() | more
