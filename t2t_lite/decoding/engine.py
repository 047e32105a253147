"""What translates token ids, whoever wrote it."""

import functools
import threading
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import tensorflow as tf

from t2t_lite.decoding import beginnings
from t2t_lite.decoding.alternatives import AlternativesSearch
from t2t_lite.decoding.beam_search import Hypotheses
from t2t_lite.decoding.devices import make_replicas
from t2t_lite.decoding.prefix import PrefixTokens
from t2t_lite.decoding.search import ids_translator
from t2t_lite.decoding.search_options import SearchOptions
from t2t_lite.decoding.steering import Steering
from t2t_lite.decoding.term_search import TermSearch
from t2t_lite.decoding.terms import Term
from t2t_lite.decoding.words import Words
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
    # A function of ids as above, str that the translations begin with, and how
    # many alternatives behind them, as `AlternativesSearch` returns; or None.
    find_alternatives: Callable | None = None
    # As `translate_prefixed`, but with the Terms of each as the last argument.
    translate_with_terms: Callable | None = None


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
    making = threading.Lock()  # Threads of several devices come at once.

    def make_translator(options: SearchOptions, **arguments: Any) -> Callable:
        return ids_translator(
            model, options, xla, replicas=replicas, **arguments
        )

    # Most translators are never given a prefix.
    @functools.cache
    def prefix_tokens() -> PrefixTokens:
        return PrefixTokens(target.token_bytes)

    @functools.cache
    def prefixed() -> Callable:
        constraint = steering.behind(prefix_tokens())
        return make_translator(
            options, constraint=constraint, given=("prefixes_BK3",)
        )

    @functools.cache
    def term_search() -> TermSearch:
        words = Words(target.token_bytes)
        tokens = prefix_tokens()
        return TermSearch(make_translator, options, steering, tokens, words)

    @functools.cache
    def alternatives_search(count: int) -> AlternativesSearch:
        words = Words(target.token_bytes)
        tokens = prefix_tokens()
        return AlternativesSearch(
            make_translator, options, steering, tokens, words, count
        )

    def translate_prefixed(
        ids: tf.RaggedTensor,
        prefixes: Sequence[str],
        ends_there: Sequence[bool],
    ) -> Hypotheses:
        with making:
            tokens, translate_ids = prefix_tokens(), prefixed()
        begun = beginnings.encode(
            tf.constant(prefixes), target, tf.constant(ends_there)
        )
        return translate_ids(ids, tokens.places(begun.to_tensor()))

    def translate_with_terms(
        ids: tf.RaggedTensor,
        prefixes: Sequence[str],
        ends_there: Sequence[bool],
        asked: Sequence[Sequence[Term]],
    ) -> Hypotheses:
        with making:
            search = term_search()
        begun = beginnings.encode(
            tf.constant(prefixes), target, tf.constant(ends_there)
        )
        return search(ids, begun.to_tensor(), asked)

    def find_alternatives(
        ids: tf.RaggedTensor, prefixes: Sequence[str], count: int
    ) -> Hypotheses:
        with making:
            search = alternatives_search(count)
        begun = beginnings.encode(tf.constant(prefixes), target)
        return search(ids, begun.to_tensor())

    return Engine(
        make_translator(options, constraint=steering.constraint),
        model.hparams.max_length,
        description,
        model,
        max(1, len(replicas)),
        translate_prefixed,
        find_alternatives,
        translate_with_terms,
    )
