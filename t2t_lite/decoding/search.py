"""Batches of token ids to their translations: the search, and its shapes."""

import functools
from collections.abc import Callable
from typing import NamedTuple

import tensorflow as tf
from absl import logging
from keras import ops

from t2t_lite.decoding import beam_search
from t2t_lite.decoding.beam_search import Hypotheses
from t2t_lite.errors import InputError
from t2t_lite.model import transformer
from t2t_lite.tensor import NEG_INF
from t2t_lite.token_ids import EOS, PAD

_BATCH_SIZES = (1, 8, 64)
# What a batch may have: tokens of one side, padding included, and rows.
_MOST_AT_ONCE = 2048, 128
_MOST_AT_ONCE_WIDE = 384, 8  # The same for beams of more than _WIDEST_AT_ONCE.
_SHORT = 32  # Up to so many tokens, sequences go together without XLA.
_WIDEST_AT_ONCE = 8  # Beams wider than this take fewer rows.


class SearchOptions(NamedTuple):
    """How to search; the paper's section 6.1 has the defaults of HParams."""

    beam_width: int
    length_penalty: float
    max_extra_length: int  # tokens beyond those of the source
    nbest: int = 1  # how many translations of each line

    @classmethod
    def of(cls, hparams, **changes):
        """Returns the options of an HParams, with those not None replaced.

        Raises:
            InputError: an option is out of its range.
        """
        chosen = {name: getattr(hparams, name) for name in cls._fields[:3]}
        chosen |= {k: v for k, v in changes.items() if v is not None}
        options = cls(**chosen)
        for name, least in (
            ("beam_width", 1),
            ("length_penalty", 0),
            ("max_extra_length", 0),
            ("nbest", 1),
        ):
            received = getattr(options, name)
            if received < least:
                raise InputError(
                    f"{name} must be at least {least}; received "
                    f"{name}={received}"
                )
        if options.nbest > options.beam_width:
            raise InputError(
                f"nbest must be at most beam_width={options.beam_width}; "
                f"received nbest={options.nbest}"
            )
        return options


class Engine(NamedTuple):
    """What translates token ids: a model in memory, or a SavedModel."""

    translate_ids: Callable  # as `ids_translator` returns
    max_length: int  # the most ids of a source
    description: str  # where the weights are from
    model: transformer.Transformer | None = None  # None for a SavedModel


def search(
    model,
    source_ids,
    options,
    min_finished=1,
    constraint=None,
    xla=False,
):
    """Returns the Hypotheses of a batch of sources.

    Each sentence gets at most `max_extra_length` tokens more than it has
    itself.

    Args:
        model: Transformer.
        source_ids: int32 [B, S], EOS at each end, padded with 0.
        options: SearchOptions.
        min_finished: int up to the beam's width, how many hypotheses must have
            been found.
        constraint: a function (source_ids, int32 max_lengths_B, int W) to the
            beam_search.Constraint of the batch, or None.
        xla: bool, whether XLA compiles it: shapes stay the same then. Without,
            the cache is as long as the hypotheses are in each step, and
            sentences whose search has ended are left out; a graph must know
            neither B nor S.
    """
    T = room(model.hparams, ops.shape(source_ids)[1], options)
    lengths_B = ops.sum(ops.cast(ops.not_equal(source_ids, PAD), "int32"), 1)
    # A row that is all padding only fills the batch up: it ends at once.
    max_lengths_B = ops.where(
        lengths_B > 0,
        ops.minimum(lengths_B + options.max_extra_length, T),
        0,
    )
    step, cache = model.start_decoding(
        source_ids, options.beam_width, T if xla else None
    )
    is_padding_V = ops.equal(ops.arange(model.num_target_ids), PAD)

    def step_without_padding(ids_BW, cache):
        logits_BWV, cache = step(ids_BW, cache)
        return ops.where(is_padding_V, NEG_INF, logits_BWV), cache

    return beam_search.beam_search(
        step_without_padding,
        cache,
        transformer.reorder,
        max_lengths_B,
        max_length=T,
        beam_width=options.beam_width,
        alpha=options.length_penalty,
        eos=EOS,
        num_best=options.nbest,
        min_finished=max(options.nbest, min_finished),
        constraint=constraint
        and constraint(source_ids, max_lengths_B, options.beam_width),
        drop_finished=not xla,
    )


def room(hparams, source_length, options):
    """Returns how many tokens the longest translation of a batch may have."""
    most = source_length + options.max_extra_length
    if hparams.positions == "sinusoidal":
        return most
    if isinstance(most, int):  # XLA wants shapes that stay numbers.
        return min(most, hparams.learned_positions)
    return ops.minimum(most, hparams.learned_positions)


def batch_shapes(max_length, beam_width=1):
    """Returns the (rows, length) that batches are padded to for XLA.

    Few, for XLA compiles a program for each; a step of the ladder of lengths
    wastes at most a third.

    >>> batch_shapes(20)
    [(1, 8), (8, 8), (64, 8), (1, 16), (8, 16), (64, 16), (1, 20), (8, 20), \
(64, 20)]
    """
    return [
        (rows, length)
        for length in length_ladder(max_length)
        for rows in _BATCH_SIZES
        if rows <= _most_rows(length, beam_width)
    ]


def length_ladder(max_length):
    """Returns the lengths that sequences are padded to, as a list of int."""
    ladder = [8, 16, 24, 32]
    while ladder[-1] < max_length:
        ladder.append(ladder[-2] * 2)
    return [*(n for n in ladder if n < max_length), max_length]


def _most_rows(length, beam_width):
    tokens, rows = _most_at_once(beam_width)
    return min(rows, max(1, tokens // length))


def _most_at_once(beam_width):
    is_wide = beam_width > _WIDEST_AT_ONCE
    return _MOST_AT_ONCE_WIDE if is_wide else _MOST_AT_ONCE


def in_batches(run, lengths_N, max_length, results, few_shapes, beam_width=1):
    """Returns `results` with the rows that `run` gives for all sequences.

    Sequences go together that are of like length, or short. All of it happens
    in the graph, so that a served model batches as a program of ours does.

    Args:
        run: a function (int32 rows_R, int32 num_rows, int32 length) to the
            results of the sequences rows_R, padded to [num_rows, length]; there
            may be none.
        lengths_N: int32, how long each sequence is; those of 0 are left out.
        max_length: int, the largest length there can be.
        results: tuple of tensors [N, ...], what holds for those left out.
        few_shapes: bool, whether [num_rows, length] comes from `batch_shapes`;
            if not, it is no more than the sequences need, and each batch comes
            in two halves.
        beam_width: int; wide beams take fewer rows at once.
    """
    tf.debugging.assert_less_equal(
        lengths_N,
        max_length,
        f"a sequence has more than the {max_length} tokens that there may be",
    )
    sizes_R = tf.constant(_BATCH_SIZES)
    shape_of = functools.partial(_shape_as_needed, beam_width)
    if few_shapes:
        ladder = length_ladder(max_length)
        shape_of = functools.partial(_shape_in_ladder, beam_width, ladder)
    order_N = tf.argsort(lengths_N, direction="DESCENDING", stable=True)
    count = tf.math.count_nonzero(lengths_N, dtype=tf.int32)

    def one_batch(start, results):
        length, shortest, most_rows = shape_of(lengths_N[order_N[start]])
        rows_R = order_N[start : tf.minimum(start + most_rows, count)]
        rows_R = tf.boolean_mask(
            rows_R, tf.gather(lengths_N, rows_R) >= shortest
        )
        # Halves run at the same time: one computes while the other prepares.
        halves = [rows_R] if few_shapes else [rows_R[::2], rows_R[1::2]]
        for half_R in halves:
            num_rows = tf.size(half_R)
            if few_shapes:
                num_rows = sizes_R[tf.searchsorted(sizes_R, num_rows[None])[0]]
            found = run(half_R, num_rows, length)
            results = tuple(
                tf.tensor_scatter_nd_update(
                    result, half_R[:, None], of_half[: tf.size(half_R)]
                )
                for result, of_half in zip(results, found, strict=True)
            )
        return start + tf.size(rows_R), results

    _, results = tf.while_loop(
        lambda start, _: start < count,
        one_batch,
        (tf.constant(0), tuple(results)),
        parallel_iterations=1,
    )
    return results


def _shape_in_ladder(beam_width, ladder, longest):
    """Returns (length, shortest sequence, most rows) of the next batch.

    All are int32 scalars, as `longest` is, the longest sequence that is left.
    """
    most_rows = [
        max(n for n in _BATCH_SIZES if n <= _most_rows(length, beam_width))
        for length in ladder
    ]
    place = tf.searchsorted(ladder, longest[None])[0]
    shortest_P = [1, *(length + 1 for length in ladder[:-1])]
    return tuple(
        tf.constant(of_place)[place]
        for of_place in (ladder, shortest_P, most_rows)
    )


def _shape_as_needed(beam_width, longest):
    """Returns what `_shape_in_ladder` does; here any shape will do."""
    tokens, rows = _most_at_once(beam_width)
    shortest = tf.where(longest <= _SHORT, 1, longest // 2)
    return longest, shortest, tf.clip_by_value(tokens // longest, 1, rows)


def take_rows(ids_NS, rows_R, num_rows, length):
    """Returns int32 [num_rows, length]: some rows, filled up with padding."""
    ids_RS = tf.gather(ids_NS, rows_R)[:, :length]
    missing = length - tf.shape(ids_RS)[1]
    return tf.pad(ids_RS, [[0, num_rows - tf.size(rows_R)], [0, missing]])


def ids_translator(
    model,
    options,
    xla,
    max_length=None,
    min_finished=1,
    constraint=None,
):
    """Returns the function that translates any number of id sequences.

    Args:
        model: Transformer.
        options: SearchOptions.
        xla: bool, whether XLA compiles the search, once for each shape; None:
            where there is a GPU. (On a CPU it makes a lone sentence faster, and
            batches slower.)
        max_length: int, the most ids of a source; that of the model's hparams
            when not given.
        min_finished: int, that of `search`.
        constraint: that of `search`.

    Returns:
        tf.function: int32 RaggedTensor [N, (length)], EOS at each end, to
        Hypotheses ids_NWT and scores_NW. An empty sequence gets no ids, and
        the scores 0, -inf, -inf, ...
    """
    if xla is None:
        xla = bool(tf.config.get_visible_devices("GPU"))
    max_length = max_length or model.hparams.max_length
    T, W = room(model.hparams, max_length, options), options.beam_width
    if xla:
        logging.info(
            "XLA compiles the search for each shape that it meets: at most %d "
            "programs.",
            len(batch_shapes(max_length, W)),
        )
    search_batch = tf.function(
        lambda source_ids: search(
            model, source_ids, options, min_finished, constraint, xla
        ),
        input_signature=[tf.TensorSpec([None, None], tf.int32)],
        jit_compile=xla or None,
        autograph=False,
        # Called twice, for the halves of a batch; kept once in the graph.
        experimental_attributes={"_noinline": True},
    )

    def translate(ids):
        ids_NS = ids.to_tensor()

        def run(rows_R, num_rows, length):
            found = search_batch(take_rows(ids_NS, rows_R, num_rows, length))
            missing = T - tf.shape(found.ids_BWT)[2]
            return found._replace(
                ids_BWT=tf.pad(found.ids_BWT, [[0, 0], [0, 0], [0, missing]])
            )

        N = tf.shape(ids_NS)[0]
        blank_W = tf.constant([0.0] + [-float("inf")] * (W - 1))
        blank = Hypotheses(
            tf.zeros([N, W, T], tf.int32), tf.repeat(blank_W[None], N, axis=0)
        )
        lengths_N = tf.cast(ids.row_lengths(), tf.int32)
        return Hypotheses(
            *in_batches(run, lengths_N, max_length, blank, xla, W)
        )

    return tf.function(
        translate,
        input_signature=[tf.RaggedTensorSpec([None, None], tf.int32)],
        autograph=False,
    )


def model_engine(model, options, xla=None, description="a model in memory"):
    """Returns the Engine of a Transformer in memory.

    Args:
        model: Transformer.
        options: SearchOptions.
        xla: that of `ids_translator`.
        description: str, where the weights are from.
    """
    return Engine(
        ids_translator(model, options, xla),
        model.hparams.max_length,
        description,
        model,
    )
