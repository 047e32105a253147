"""What translates token ids, whoever wrote it."""

import functools
import threading
from collections.abc import Callable, Sequence
from typing import NamedTuple

import tensorflow as tf

from t2t_lite.decoding import beginnings
from t2t_lite.decoding.beam_search import Hypotheses
from t2t_lite.decoding.devices import make_replicas
from t2t_lite.decoding.prefix import PrefixTokens
from t2t_lite.decoding.search import ids_translator
from t2t_lite.decoding.search_options import SearchOptions
from t2t_lite.decoding.steering import Steering
from t2t_lite.model.transformer import Transformer
from t2t_lite.text.vocabulary import Vocabulary


class Engine(NamedTuple):
    """What translates token ids: a model in memory, or a SavedModel."""

    translate_ids: Callable  # as `ids_translator` returns
    max_length: int  # the most ids of a source
    description: str  # where the weights are from
    model: Transformer | None = None  # None for a SavedModel
    num_devices: int = 1
    # A function of ids as above, str that the translations begin with, and bool
    # whether they end there, to Hypotheses; None if there is none.
    translate_prefixed: Callable | None = None


def model_engine(
    model: Transformer,
    vocabulary: Vocabulary,
    options: SearchOptions,
    xla: bool | None = None,
    *,
    description: str = "a model in memory",
    devices: Sequence[str] = (),
) -> Engine:
    """Returns the Engine of a Transformer in memory.

    Args:
        model: Transformer.
        vocabulary: Vocabulary.
        options: SearchOptions.
        xla: that of `ids_translator`.
        description: str, where the weights are from.
        devices: that of `make_replicas`.

    Raises:
        InputError: an option does not suit the vocabulary.
    """
    target = vocabulary.target
    replicas = make_replicas(model, devices)
    steering = Steering(options, target)
    making_prefixed = threading.Lock()

    @functools.cache  # Most translators are never given a prefix.
    def prefixed() -> tuple[PrefixTokens, Callable]:
        tokens = PrefixTokens(target.token_bytes)
        return tokens, ids_translator(
            model,
            options,
            xla,
            constraint=steering.behind(tokens),
            with_prefixes=True,
            replicas=replicas,
        )

    def translate_prefixed(
        ids: tf.RaggedTensor,
        prefixes: Sequence[str],
        ends_there: Sequence[bool],
    ) -> Hypotheses:
        with making_prefixed:  # Threads of several devices come at once.
            tokens, translate_ids = prefixed()
        begun = beginnings.encode(
            tf.constant(prefixes), target, tf.constant(ends_there)
        )
        return translate_ids(ids, tokens.places(begun.to_tensor()))

    return Engine(
        ids_translator(
            model,
            options,
            xla,
            constraint=steering.constraint,
            replicas=replicas,
        ),
        model.hparams.max_length,
        description,
        model,
        max(1, len(replicas)),
        translate_prefixed,
    )
