"""Several models that search as one: their log probabilities are averaged."""

import dataclasses
from collections.abc import Sequence

import keras
from keras import ops

from t2t_lite.constraints.constrained_step import (
    Cache,
    LogitsStep,
    Reorder,
    Step,
)
from t2t_lite.constraints.log_probs import LogProbs
from t2t_lite.decoding.beam_search import with_log_probs
from t2t_lite.errors import require
from t2t_lite.hparams import HParams
from t2t_lite.model import cache as decoder_cache
from t2t_lite.model.transformer import Transformer
from t2t_lite.tensor import NEG_INF, Tensor
from t2t_lite.token_ids import PAD


class Ensemble:
    """Transformers of the same vocabulary, in place of one in a search.

    Args:
        models: Transformers, at least one.

    Raises:
        InputError: their numbers of ids differ.
    """

    def __init__(self, models: Sequence[Transformer]):
        self.models = tuple(models)
        rule = "an ensemble needs a model"
        require(rule, bool(self.models), models=self.models)
        sizes = [(m.vocabulary_size, m.num_target_ids) for m in self.models]
        rule = (
            "models that translate together must have the same numbers of "
            "source and target ids"
        )
        require(rule, len(set(sizes)) == 1, source_and_target_ids=sizes)
        self.vocabulary_size, self.num_target_ids = sizes[0]
        self.hparams = _common([model.hparams for model in self.models])

    @property
    def weights(self) -> list[keras.Variable]:
        """The weights of all models."""
        return [weight for model in self.models for weight in model.weights]


def models_of(model: Transformer | Ensemble) -> tuple[Transformer, ...]:
    """Returns the Transformers of an Ensemble, or the only one."""
    return model.models if isinstance(model, Ensemble) else (model,)


def only_model(model: Transformer | Ensemble) -> Transformer:
    """Returns the model, if there is only one.

    Raises:
        InputError: it is an Ensemble.
    """
    count = len(models_of(model))
    rule = "an ensemble is not supported here: give one model"
    require(rule, count == 1, models=count)
    return model


def start(
    model: Transformer | Ensemble,
    source_ids: Tensor,
    beam_width: int,
    max_length: int | None = None,
) -> tuple[Step, Cache, Reorder]:
    """Returns (step, cache, reorder) for `beam_search` over one batch.

    Log probabilities are those of one model, or the mean of those of several,
    whose probabilities need not sum to 1. Padding has none.

    Args:
        model: Transformer, or an Ensemble.
        source_ids: that of `Transformer.start_decoding`.
        beam_width: that of `Transformer.start_decoding`.
        max_length: that of `Transformer.start_decoding`.
    """
    steps, caches = zip(
        *(
            each.start_decoding(source_ids, beam_width, max_length)
            for each in models_of(model)
        ),
        strict=True,
    )
    steps = [_without_padding(step, model.num_target_ids) for step in steps]
    if len(steps) == 1:
        return steps[0], caches[0], decoder_cache.reorder

    def mean_step(ids_BW, caches):
        found = [
            step(ids_BW, cache)
            for step, cache in zip(steps, caches, strict=True)
        ]
        log_probs, caches = zip(*found, strict=True)
        parts = zip(*log_probs, strict=True)
        return LogProbs(*(sum(part) / len(steps) for part in parts)), caches

    def reorder(caches, parent_BW):
        return tuple(decoder_cache.reorder(each, parent_BW) for each in caches)

    return mean_step, caches, reorder


def _without_padding(step: LogitsStep, num_ids: int) -> Step:
    """Returns a step of logits as one of log probabilities, without padding."""
    is_padding_V = ops.equal(ops.arange(num_ids, dtype="int32"), PAD)

    def step_without_padding(ids_BW, cache):
        logits_BWV, cache = step(ids_BW, cache)
        return ops.where(is_padding_V, NEG_INF, logits_BWV), cache

    return with_log_probs(step_without_padding)


def _common(hparams: Sequence[HParams]) -> HParams:
    """Returns the first HParams, with lengths that suit all of them."""
    changes = {"max_length": min(each.max_length for each in hparams)}
    learned = [h.learned_positions for h in hparams if h.positions == "learned"]
    if learned:
        changes |= {"positions": "learned", "learned_positions": min(learned)}
    return dataclasses.replace(hparams[0], **changes)
