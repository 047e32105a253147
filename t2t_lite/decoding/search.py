"""Token ids to the token ids of their translations."""

import functools
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import tensorflow as tf
from absl import logging
from keras import ops

from t2t_lite.constraints.token_constraints import MakeConstraint, SearchBatch
from t2t_lite.decoding import beam_search, ensemble, shapes
from t2t_lite.decoding.beam_search import Hypotheses
from t2t_lite.decoding.devices import (
    DividedSearch,
    Replica,
    trace_on,
)
from t2t_lite.decoding.ensemble import Ensemble
from t2t_lite.decoding.sampling import Sampling, row_keys, sample
from t2t_lite.decoding.search_options import SearchOptions
from t2t_lite.errors import require, require_optional_bool
from t2t_lite.hardware import Hardware, find_hardware
from t2t_lite.hparams import HParams
from t2t_lite.model.transformer import Transformer
from t2t_lite.token_ids import EOS, PAD

_MOST_CANDIDATES = 2**31 - 1


class _GivenTensor(NamedTuple):
    """An int32 tensor that a SearchBatch may be given, a row per sequence."""

    spec: tf.TensorSpec
    # The size of its second axis is a multiple of this, so that XLA compiles
    # few shapes.
    multiple: int


_GIVEN = {
    "prefixes_BK3": _GivenTensor(tf.TensorSpec([None, None, 3], tf.int32), 16),
    "terms_BCL": _GivenTensor(tf.TensorSpec([None, None, None], tf.int32), 4),
}


def search(
    model: Transformer | Ensemble,
    source_ids: tf.Tensor,
    options: SearchOptions,
    *,
    min_finished: int = 1,
    constraint: MakeConstraint | None = None,
    xla: bool = False,
    **given: tf.Tensor,
) -> Hypotheses:
    """Returns the Hypotheses of a batch of sources.

    Each translation has at most `max_extra_length` tokens more than its source.

    Args:
        model: Transformer, or an Ensemble.
        source_ids: int32 [B, S], each row ending in EOS, padded with 0.
        options: SearchOptions.
        min_finished: int up to the beam's width, how many hypotheses must have
            been found.
        constraint: a function from the SearchBatch to its Constraint, or None.
        xla: bool, whether XLA compiles it: then shapes stay the same.
            Otherwise, the cache is as long as the hypotheses are in each step,
            and sentences whose search has ended are left out; a graph must know
            neither B nor S.
        **given: what else the SearchBatch has, by name.
    """
    W = options.beam_width
    T = max_target_length(model.hparams, ops.shape(source_ids)[1], options)
    lengths_B = ops.sum(ops.cast(ops.not_equal(source_ids, PAD), "int32"), 1)
    # A row that is all padding only fills the batch: it ends at once.
    max_lengths_B = ops.where(
        lengths_B > 0,
        ops.minimum(lengths_B + options.max_extra_length, T),
        0,
    )
    if constraint is not None:
        constraint = constraint(
            SearchBatch(
                source_ids_BS=source_ids,
                max_lengths_B=max_lengths_B,
                max_length=T,
                beam_width=W,
                num_target_ids=model.num_target_ids,
                **given,
            )
        )
    step, cache, reorder = ensemble.start(
        model, source_ids, beam_width=W, max_length=T if xla else None
    )
    if options.samples:
        return sample(
            step,
            cache,
            max_lengths_B,
            max_length=T,
            num_samples=W,
            alpha=options.length_penalty,
            eos=EOS,
            sampling=_sampling(options),
            keys_B=row_keys(source_ids, options.seed),
            constraint=constraint,
        )
    return beam_search.beam_search(
        step,
        cache,
        reorder,
        max_lengths_B=max_lengths_B,
        max_length=T,
        beam_width=W,
        alpha=options.length_penalty,
        eos=EOS,
        num_best=options.nbest,
        min_finished=max(options.nbest, min_finished),
        constraint=constraint,
        drop_finished=not xla,
    )


def _sampling(options: SearchOptions) -> Sampling:
    return Sampling(
        top_k=options.sample_top_k,
        top_p=options.sample_top_p or 1.0,
        temperature=options.temperature,
    )


def max_target_length(
    hparams: HParams, source_length: int | tf.Tensor, options: SearchOptions
) -> int | tf.Tensor:
    """Returns how many tokens the longest translation may have, EOS included.

    Args:
        hparams: HParams.
        source_length: int or int32 scalar, tokens of the longest source.
        options: SearchOptions.
    """
    most = source_length + options.max_extra_length
    if hparams.positions != "learned":
        return most
    if isinstance(most, int):  # XLA wants shapes that stay numbers.
        return min(most, hparams.learned_positions)
    return ops.minimum(most, hparams.learned_positions)


def ids_translator(
    model: Transformer | Ensemble,
    options: SearchOptions,
    xla: bool | None = None,
    *,
    max_length: int | None = None,
    min_finished: int = 1,
    constraint: Callable | None = None,
    given: Sequence[str] = (),
    hardware: Hardware | None = None,
    replicas: Sequence[Replica] = (),
) -> Callable:
    """Returns the function that translates any number of id sequences.

    Args:
        model: Transformer, or an Ensemble.
        options: SearchOptions.
        xla: bool, whether XLA compiles the search, once for each shape; None:
            if there is a GPU. (On a CPU it makes a single sentence faster, and
            batches slower.)
        max_length: int, the most ids of a source; that of the model's hparams
            when not given.
        min_finished: int, that of `search`.
        constraint: that of `search`.
        given: names of what else a SearchBatch has, such as "prefixes_BK3": the
            function takes an argument for each, with those of all sequences.
        hardware: Hardware that its batches suit; that of this process when not
            given.
        replicas: Replicas of the model that share the work; none if it works
            alone.

    Returns:
        tf.function (a DividedSearch if there are replicas): int32 RaggedTensor
        [N, (length)], each row ending in EOS, to Hypotheses ids_NWT and
        scores_NW. An empty sequence has no ids and scores 0, -inf, -inf, ...
    """
    require_optional_bool(xla=xla)
    if xla is None:
        xla = bool(tf.config.get_visible_devices("GPU"))
    require_searchable(model, xla)
    if max_length is None:
        max_length = model.hparams.max_length
    _require_countable(options.beam_width, model.num_target_ids)
    require(
        "hardware must be a t2t_lite.hardware.Hardware",
        hardware is None or isinstance(hardware, Hardware),
        hardware=hardware,
    )
    capacity = shapes.capacity(
        hardware or find_hardware(),
        options.beam_width,
        tokens_at_once=options.tokens_at_once,
        num_models=len(ensemble.models_of(model)),
    )
    if xla:
        logging.info(
            "XLA compiles the search for each shape that it meets: at most %d "
            "programs.",
            len(shapes.batch_shapes(max_length, capacity)),
        )
    limits = {
        "max_length": max_length,
        "fixed_shapes": xla,
        "capacity": capacity,
    }
    arguments = {
        "xla": xla,
        "min_finished": min_finished,
        "constraint": constraint,
        "given": given,
    }
    if not replicas:
        return _translate_function(model, options, limits, **arguments)
    searches = [
        trace_on(
            replica,
            _translate_function(replica.model, options, limits, **arguments),
        )
        for replica in replicas
    ]
    return DividedSearch(searches, functools.partial(shapes.batches, **limits))


def require_searchable(model: Transformer | Ensemble, xla: bool | None) -> None:
    """Checks that a search in int8 is one that XLA compiles for a CPU.

    Otherwise it would be slow, or has never been tried.

    Args:
        model: Transformer, or an Ensemble.
        xla: bool, whether XLA compiles the search; None: if there is a GPU.

    Raises:
        InputError: it is not.
    """
    models = ensemble.models_of(model)
    if not any(each.search_precision == "int8" for each in models):
        return
    require(
        "precision=int8 is for a CPU: choose another one, or hide the GPUs "
        "(CUDA_VISIBLE_DEVICES=)",
        not tf.config.get_visible_devices("GPU"),
    )
    rule = "precision=int8 is for searches that XLA compiles: give xla=True"
    require(rule, bool(xla), xla=xla)


def _require_countable(beam_width: int, V: int) -> None:
    """Raises InputError if 32 bits cannot number a beam's continuations."""
    require(
        f"beam_width must be at most {_MOST_CANDIDATES // V:,} for {V:,} ids",
        beam_width * V <= _MOST_CANDIDATES,
        beam_width=beam_width,
    )


def _translate_function(
    model: Transformer | Ensemble,
    options: SearchOptions,
    limits: dict[str, Any],
    *,
    given: Sequence[str],
    **arguments: Any,
) -> Callable:
    """Returns what `ids_translator` does, on one device.

    Args:
        model: Transformer, or an Ensemble.
        options: SearchOptions.
        limits: those of `run_in_batches`.
        given: that of `ids_translator`.
        **arguments: those of `_search_function`.
    """
    W = options.beam_width
    search_batch = _search_function(model, options, given=given, **arguments)
    specs = [_GIVEN[name].spec for name in given]
    multiples = [_GIVEN[name].multiple for name in given]

    def translate(ids, *others):
        ids_NS = ids.to_tensor()
        # Only for these sources: room for the longest possible takes memory.
        T = max_target_length(model.hparams, tf.shape(ids_NS)[1], options)
        sizes = [
            _next_multiple(multiple, tf.shape(each)[1])
            for multiple, each in zip(multiples, others, strict=True)
        ]

        def run(rows_R, num_rows, length):
            found = search_batch(
                shapes.take_rows(
                    ids_NS, rows_R, num_rows=num_rows, length=length
                ),
                *(
                    shapes.take_rows(
                        each, rows_R, num_rows=num_rows, length=size
                    )
                    for each, size in zip(others, sizes, strict=True)
                ),
            )
            ids_BWT = found.ids_BWT[:, :, :T]  # XLA's may be longer.
            missing = T - tf.shape(ids_BWT)[2]
            ids_BWT = tf.pad(ids_BWT, [[0, 0], [0, 0], [0, missing]])
            return ids_BWT, found.scores_BW

        ids_NWT, scores_NW = shapes.run_in_batches(
            run,
            tf.cast(ids.row_lengths(), tf.int32),
            _no_hypotheses(tf.shape(ids_NS)[0], W, T),
            **limits,
        )
        return Hypotheses(ids_NWT, scores_NW)

    return tf.function(
        translate,
        input_signature=[tf.RaggedTensorSpec([None, None], tf.int32), *specs],
        autograph=False,
    )


def _search_function(
    model: Transformer | Ensemble,
    options: SearchOptions,
    *,
    xla: bool,
    given: Sequence[str],
    **arguments: Any,
) -> Callable:
    """Returns `search` as a tf.function of int32 source ids [B, S].

    What the SearchBatch is given is passed as further arguments.
    """

    def search_batch(source_ids, *others):
        others = dict(zip(given, others, strict=True))
        return search(
            model, source_ids, options, xla=xla, **arguments, **others
        )

    specs = [_GIVEN[name].spec for name in given]
    return tf.function(
        search_batch,
        input_signature=[tf.TensorSpec([None, None], tf.int32), *specs],
        jit_compile=xla or None,
        autograph=False,
        # Called for each part of a batch; kept once in the graph.
        experimental_attributes={"_noinline": True},
    )


def _next_multiple(size: int, number: tf.Tensor) -> tf.Tensor:
    """Returns a number rounded up, so that XLA compiles few shapes."""
    return (number + size - 1) // size * size


def _no_hypotheses(N, W, T):
    """Returns the Hypotheses of N empty sequences: the best has no ids."""
    scores_W = tf.constant([0.0] + [-float("inf")] * (W - 1))
    return Hypotheses(
        tf.zeros([N, W, T], tf.int32), tf.repeat(scores_W[None], N, axis=0)
    )
