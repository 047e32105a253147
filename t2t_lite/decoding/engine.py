"""What translates token ids, wherever its weights are from."""

import functools
import threading
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
import tensorflow as tf

from t2t_lite.constraints.terms import Term
from t2t_lite.decoding import piece_prefix
from t2t_lite.decoding.alternatives import AlternativesSearch
from t2t_lite.decoding.beam_search import Hypotheses
from t2t_lite.decoding.devices import make_replicas
from t2t_lite.decoding.ensemble import Ensemble
from t2t_lite.decoding.search import ids_translator
from t2t_lite.decoding.search_options import SearchOptions
from t2t_lite.decoding.steering import Steering
from t2t_lite.decoding.term_search import TermSearch
from t2t_lite.hardware import Hardware
from t2t_lite.model.transformer import Transformer
from t2t_lite.text.vocabulary import Vocabulary
from t2t_lite.token_ids import EOS


class Engine(NamedTuple):
    """What translates token ids: a model in memory, or a SavedModel."""

    translate_ids: Callable  # as `ids_translator` returns
    max_length: int  # the most ids of a source
    description: str  # where the weights are from
    model: Transformer | Ensemble | None = None  # None for a SavedModel
    num_devices: int = 1
    # A function from ids as above, the str that each translation begins with,
    # and a bool for whether it ends there, to Hypotheses; None if there is
    # none.
    translate_prefixed: Callable | None = None
    # A function from ids as above, the str that each translation begins with,
    # and how many alternatives to find after it, to what `AlternativesSearch`
    # returns; or None.
    find_alternatives: Callable | None = None
    # Like `translate_prefixed`, with the Terms of each as `terms`.
    translate_with_terms: Callable | None = None
    # A function from ids as above, and a str for each, to its score as a
    # translation, -inf for what the options do not allow; or None.
    score_texts: Callable | None = None


def model_engine(
    model: Transformer | Ensemble,
    vocabulary: Vocabulary,
    options: SearchOptions,
    xla: bool | None = None,
    *,
    description: str = "a model in memory",
    devices: Sequence[str] = (),
    hardware: Hardware | None = None,
) -> Engine:
    """Returns the Engine of a Transformer in memory, or of several.

    Args:
        model: Transformer, or an Ensemble.
        vocabulary: Vocabulary.
        options: SearchOptions.
        xla: that of `ids_translator`.
        description: str, where the weights are from.
        devices: that of `make_replicas`.
        hardware: that of `ids_translator`.

    Raises:
        InputError: an option does not suit the vocabulary.
    """
    replicas = make_replicas(model, devices)

    def make_translator(options: SearchOptions, **arguments: Any) -> Callable:
        return ids_translator(
            model,
            options,
            xla,
            hardware=hardware,
            replicas=replicas,
            **arguments,
        )

    searches = _Searches(make_translator, vocabulary.target, options)
    return Engine(
        searches.translate_ids,
        model.hparams.max_length,
        description,
        model=model,
        num_devices=max(1, len(replicas)),
        translate_prefixed=searches.translate_prefixed,
        find_alternatives=searches.find_alternatives,
        translate_with_terms=searches.translate_with_terms,
        score_texts=searches.score_texts,
    )


class _Searches:
    """The searches of a model; those with prefixes are made on first use.

    Args:
        make_translator: that of AlternativesSearch.
        vocabulary: Vocabulary of targets.
        options: SearchOptions.
    """

    def __init__(
        self,
        make_translator: Callable,
        vocabulary: Vocabulary,
        options: SearchOptions,
    ):
        self._make_translator, self._options = make_translator, options
        self._vocabulary = vocabulary
        self._steering = Steering(options, vocabulary)
        self._making = threading.Lock()  # For threads of several devices.
        self.translate_ids = make_translator(
            options, constraint=self._steering.constraint
        )

    def translate_prefixed(
        self,
        ids: tf.RaggedTensor,
        prefixes: Sequence[str],
        is_complete: Sequence[bool],
    ) -> Hypotheses:
        """Returns the best Hypotheses that begin with prefixes."""
        with self._making:
            tokens = self._steering.prefix_tokens
            translate_ids = self._prefixed
        prefix_ids = self._encode(prefixes, is_complete)
        return translate_ids(ids, tokens.places(prefix_ids))

    def translate_with_terms(
        self,
        ids: tf.RaggedTensor,
        prefixes: Sequence[str],
        is_complete: Sequence[bool],
        terms: Sequence[Sequence[Term]],
    ) -> Hypotheses:
        """Returns the best that begin with prefixes and contain their Terms."""
        with self._making:
            search = self._term_search
        return search(ids, self._encode(prefixes, is_complete), terms)

    def score_texts(
        self, ids: tf.RaggedTensor, texts: Sequence[str]
    ) -> np.ndarray:
        """Returns float32 [B]: the scores of texts as translations.

        What the options do not allow, or there is no room for, scores -inf.
        """
        with self._making:
            tokens = self._steering.prefix_tokens
            search = self._text_search
        prefix_ids = self._encode(texts, [True] * len(texts))
        found = search(ids, tokens.forced(prefix_ids))
        is_whole_B = np.any(found.ids_BWT[:, 0] == EOS, axis=-1)
        return np.where(is_whole_B, found.scores_BW[:, 0], -np.inf)

    def find_alternatives(
        self, ids: tf.RaggedTensor, prefixes: Sequence[str], count: int
    ) -> Hypotheses:
        """Returns the best with each of the likeliest words after prefixes."""
        with self._making:
            search = self._alternatives_search
        return search(ids, self._encode(prefixes), count)

    @functools.cached_property
    def _prefixed(self) -> Callable:
        return self._make_translator(
            self._options,
            constraint=self._steering.after_prefixes(),
            given=("prefixes_BK3",),
        )

    @functools.cached_property
    def _term_search(self) -> TermSearch:
        return TermSearch(self._make_translator, self._options, self._steering)

    @functools.cached_property
    def _text_search(self) -> Callable:
        return self._make_translator(
            self._options._replace(beam_width=1, nbest=1),
            constraint=self._steering.through_prefixes(),
            given=("prefixes_BK3",),
        )

    @functools.cached_property
    def _alternatives_search(self) -> AlternativesSearch:
        return AlternativesSearch(
            self._make_translator, self._options, self._steering
        )

    def _encode(
        self, prefixes: Sequence[str], is_complete: Sequence[bool] | None = None
    ) -> tf.Tensor:
        """Returns int32 ids [B, K], padded with 0."""
        return piece_prefix.encode(
            tf.constant(prefixes),
            self._vocabulary,
            None if is_complete is None else tf.constant(is_complete),
        ).to_tensor()
