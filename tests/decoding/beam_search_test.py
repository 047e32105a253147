"""The beam search finds what brute force finds, on tables of logits."""

import dataclasses
import itertools

import numpy as np
import pytest
import tensorflow as tf
from keras import ops
from search_tables import (
    ALL,
    ALPHAS,
    EOS,
    T,
    V,
    child,
    exhaustive,
    log_prob,
    random_table,
    search,
    table_step,
    without_padding,
)
from tiny_models import TINY_MODELS, tiny_transformer

from t2t_lite.decoding import beam_search as search_module
from t2t_lite.decoding.beam_search import beam_search, with_log_probs
from t2t_lite.model import cache as decoder_cache
from t2t_lite.model import rows
from t2t_lite.tensor import NEG_INF
from t2t_lite.token_ids import PAD


@pytest.mark.parametrize("alpha", ALPHAS)
@pytest.mark.parametrize("num_best", [1, 3, 50])
def test_wide_beam_finds_the_exhaustive_best(alpha, num_best):
    table = random_table(seed=num_best)
    ids, scores = search(table, [T, T], alpha=alpha, num_best=num_best)
    assert ids.shape == (2, ALL, T)
    for b in range(2):
        best = exhaustive(table[b], T, alpha)[:num_best]
        found = [without_padding(row) for row in ids[b, :num_best]]
        assert found == [words for _, words in best]
        np.testing.assert_allclose(
            scores[b, :num_best], [score for score, _ in best], rtol=1e-5
        )


def test_each_row_keeps_to_its_own_max_length():
    table = random_table(seed=4, batch_size=3)
    lengths = [2, T, 3]
    ids, scores = search(table, lengths, num_best=ALL)
    for b, length in enumerate(lengths):
        assert (ids[b, :, length:] == 0).all()
        expected = exhaustive(table[b], length, 0.6)[:ALL]
        found = ids[b, : len(expected), :length]
        assert [without_padding(row) for row in found] == [
            words for _, words in expected
        ]
        np.testing.assert_allclose(
            scores[b, : len(expected)],
            [score for score, _ in expected],
            rtol=1e-5,
        )


def test_unfinished_hypotheses_come_after_finished_ones():
    """Even if they score better: EOS is unlikely here."""
    table = random_table(seed=5)
    table[..., EOS] -= 6
    ids, scores = search(table, [T, T], beam_width=6, num_best=6)
    for b in range(2):
        is_finished = [EOS in row.tolist() for row in ids[b]]
        count = sum(is_finished)
        assert 0 < count < 6
        assert is_finished == [True] * count + [False] * (6 - count)
        assert scores[b, count] > scores[b, count - 1]
        for group in (scores[b, :count], scores[b, count:]):
            assert (np.diff(group) <= 0).all()


@pytest.mark.parametrize("alpha", ALPHAS)
def test_scores_are_log_probabilities_over_the_length_penalty(alpha):
    table = random_table(seed=6)
    ids, scores = search(table, [T, T], beam_width=3, alpha=alpha)
    for b, w in itertools.product(range(2), range(3)):
        words = without_padding(ids[b, w])
        if EOS not in words:
            continue  # Its ids do not show its length.
        penalty = ((5 + len(words)) / 6) ** alpha
        np.testing.assert_allclose(
            scores[b, w], log_prob(table[b], words) / penalty, rtol=1e-5
        )


def test_beam_of_one_is_greedy():
    """If EOS is possible only where it is the best token.

    As the second best, it would finish a hypothesis, which is kept.
    """
    table = random_table(seed=7, batch_size=9, V=5, T=5)
    is_best = table.argmax(axis=-1) == EOS
    table[..., EOS] = np.where(is_best, table[..., EOS], -1e9)
    ids, _ = search(table, [5] * 9, beam_width=1, alpha=0.0)
    for b in range(9):
        prefix, greedy = 0, []
        while len(greedy) < 5 and EOS not in greedy:
            greedy.append(int(np.argmax(table[b, prefix])))
            prefix = child(prefix, greedy[-1], 5)
        assert ids[b, 0].tolist() == greedy + [0] * (5 - len(greedy))


@pytest.mark.parametrize("num_best", [1, 2])
@pytest.mark.parametrize("alpha", ALPHAS)
def test_stopping_early_returns_what_running_to_the_end_does(
    monkeypatch, alpha, num_best
):
    table = random_table(seed=9, batch_size=12, V=5, T=5, spread=3.0)
    kwargs = {"beam_width": 3, "alpha": alpha, "num_best": num_best}
    stopped = search(table, [5] * 12, **kwargs)
    monkeypatch.setattr(
        search_module._Search,
        "may_improve",
        lambda _, state: state.length < state.max_lengths_B,
    )
    full = search(table, [5] * 12, **kwargs)
    for one, other in zip(stopped, full, strict=True):
        np.testing.assert_array_equal(one[:, :num_best], other[:, :num_best])


def test_a_search_goes_on_until_so_many_are_found():
    table = random_table(seed=9, batch_size=12, V=5, T=5, spread=3.0)
    kwargs = {"beam_width": 3, "alpha": 0.6}
    few, _ = search(table, [5] * 12, **kwargs)
    ids, _ = search(table, [5] * 12, **kwargs, min_finished=3)
    assert not (few == EOS).any(2).all()
    assert (ids == EOS).any(2).all()
    np.testing.assert_array_equal(ids[:, 0], few[:, 0])


def test_hypotheses_beside_the_best_depend_on_no_batch_mate():
    table = random_table(seed=9, batch_size=12, V=5, T=5, spread=3.0)
    kwargs = {"beam_width": 3, "alpha": 0.6, "min_finished": 3}
    together = search(table, [5] * 12, **kwargs)
    for b in range(12):
        alone = search(table[b : b + 1], [5], **kwargs)
        for one, other in zip(alone, together, strict=True):
            np.testing.assert_allclose(one[0], other[b], atol=1e-6)


@pytest.mark.parametrize(
    ("margin", "steps"),
    # If EOS is almost certain, no longer hypothesis can be better.
    [(20.0, 1), (-20.0, 5)],
)
def test_search_takes_only_as_many_steps_as_it_needs(margin, steps):
    table = random_table(seed=10, V=5, T=5)
    table[..., EOS] += margin
    step, empty, reorder = table_step(table)
    calls = []

    def counted(ids_BW, cache):
        calls.append(ids_BW)
        return step(ids_BW, cache)

    beam_search(
        counted,
        empty(3),
        reorder,
        max_lengths_B=ops.convert_to_tensor([5, 4]),
        max_length=9,
        beam_width=3,
        alpha=0.6,
        eos=EOS,
    )
    assert len(calls) == steps


@pytest.mark.parametrize(
    ("p_end", "p_go_on", "alpha", "is_longer_better"),
    [
        (0.40, 0.55, 0.0, True),
        (0.55, 0.40, 0.0, False),
        # Only the penalty of the largest length makes up for the probability.
        (0.50, 0.45, 1.0, True),
        (0.60, 0.10, 1.0, False),
    ],
)
def test_search_goes_on_while_a_longer_hypothesis_can_win(
    p_end, p_go_on, alpha, is_longer_better
):
    """EOS at once, or 2, 2, 2, 2, EOS with all but the first token certain."""
    table = np.full((1, 341, 4), -30.0, "float32")
    prefix = 0
    for t in range(5):
        after = (
            [p_go_on, p_end] if t == 0 else [1, 1e-9] if t < 4 else [1e-9, 1]
        )
        table[0, prefix, [2, EOS]] = np.log(after)
        prefix = child(prefix, 2, 4)
    ids, _ = search(table, [5], beam_width=2, alpha=alpha)
    best = [2, 2, 2, 2, EOS] if is_longer_better else [EOS, 0, 0, 0, 0]
    assert ids[0, 0].tolist() == best


def test_first_token_given_to_the_step_is_eos_then_the_newest():
    table = random_table(seed=11)
    step, empty, reorder = table_step(table)
    given = []

    def recorded(ids_BW, cache):
        given.append(ops.convert_to_numpy(ids_BW))
        return step(ids_BW, cache)

    table[..., EOS] = -1e9
    ids, _ = beam_search(
        recorded,
        empty(1),
        reorder,
        max_lengths_B=ops.convert_to_tensor([T, T]),
        max_length=T,
        beam_width=1,
        alpha=0.6,
        eos=EOS,
    )
    assert (given[0] == EOS).all()
    np.testing.assert_array_equal(
        np.concatenate(given[1:], axis=1), ids[:, 0, : T - 1]
    )


def test_reorder_gets_the_parents():
    """A cache of all tokens so far must end up equal to the hypotheses."""
    table = random_table(seed=12, V=4, T=6)
    table[..., EOS] = -1e9  # So that all hypotheses are alive at the end.
    step, empty, reorder = table_step(table)
    W, longest = 5, 6
    last = []

    def step_and_record(ids_BW, cache):
        inner, position, history_BWT = cache
        log_probs, inner = step(ids_BW, inner)
        history_BWT = ops.slice_update(
            history_BWT, (0, 0, position), ids_BW[..., None]
        )
        return log_probs, (inner, position + 1, history_BWT)

    def reorder_and_record(cache, parent_BW):
        inner, position, history_BWT = cache
        history_BWT = ops.take_along_axis(
            history_BWT, parent_BW[..., None], axis=1
        )
        last.append(ops.convert_to_numpy(history_BWT))
        return reorder(inner, parent_BW), position, history_BWT

    cache = (
        empty(W),
        ops.convert_to_tensor(0),
        ops.zeros((2, W, longest), "int32"),
    )
    ids, _ = beam_search(
        step_and_record,
        cache,
        reorder_and_record,
        max_lengths_B=ops.convert_to_tensor([longest, longest]),
        max_length=longest,
        beam_width=W,
        alpha=0.6,
        eos=EOS,
        num_best=W,
    )
    np.testing.assert_array_equal(last[-1][..., 1:], ids[..., : longest - 1])


def test_dropping_finished_sentences_changes_nothing():
    table = random_table(seed=5, batch_size=9)
    table[:, :, EOS] += np.linspace(0, 9, 9)[:, None]  # Some end early.
    lengths_B = np.array([4, 4, 2, 4, 0, 4, 4, 3, 4], "int32")
    step, empty, reorder = table_step(table)
    num_rows = []

    def counted_step(ids_BW, cache):
        num_rows.append(ids_BW.shape[0])
        return step(ids_BW, cache)

    def find(row_B, alpha, drop_finished=True):
        length, _, prefix_BW = empty(4)
        found = beam_search(
            counted_step,
            (length, row_B, ops.take(prefix_BW, row_B, axis=0)),
            reorder,
            max_lengths_B=ops.take(lengths_B, row_B),
            max_length=T,
            beam_width=4,
            alpha=alpha,
            eos=EOS,
            num_best=2,
            min_finished=3,
            drop_finished=drop_finished,
        )
        return found.ids_BWT[:, :3], found.scores_BW[:, :3]

    unknown = [tf.TensorSpec([None], tf.int32), tf.TensorSpec([])]
    graph = tf.function(find, input_signature=unknown, autograph=False)
    row_B = ops.arange(9, dtype="int32")
    for alpha in ALPHAS:
        in_a_graph = graph(row_B, alpha)
        num_rows.clear()
        whole = find(row_B, alpha, drop_finished=False)
        assert num_rows == [9] * T
        num_rows.clear()
        dropped = find(row_B, alpha)
        assert num_rows == sorted(num_rows, reverse=True)
        assert num_rows[0] == 9 > 5 > num_rows[-1]
        for ids, scores in (dropped, in_a_graph):
            np.testing.assert_array_equal(ids, whole[0])
            np.testing.assert_allclose(scores, whole[1], rtol=1e-6)


def test_batch_mates_change_nothing():
    """Nor do their larger maximum lengths, or room that no sentence needs."""
    table = random_table(seed=13, batch_size=3, V=5, T=5)
    lengths = [2, 5, 4]
    kwargs = {"beam_width": 3, "num_best": 3}
    ids, scores = search(table, lengths, max_length=7, **kwargs)
    for b in range(3):
        alone_ids, alone_scores = search(
            table[b : b + 1], lengths[b : b + 1], **kwargs
        )
        np.testing.assert_array_equal(ids[b, :, : lengths[b]], alone_ids[0])
        assert (ids[b, :, lengths[b] :] == 0).all()
        np.testing.assert_allclose(scores[b], alone_scores[0], rtol=1e-5)


@pytest.mark.parametrize("never", [-1e9, -np.inf])
def test_a_token_that_must_not_follow_never_does(never):
    table = random_table(seed=14)
    table[..., 2] = never
    ids, scores = search(table, [T, T], num_best=ALL)
    is_found = np.isfinite(scores)
    # With two tokens and EOS, 1 + 2 + 4 + 8 end, and 16 do not.
    assert is_found.sum(axis=1).tolist() == [31, 31]
    assert not (ids[is_found] == 2).any()


@pytest.mark.parametrize("never", [-1e9, -np.inf])
def test_empty_places_score_minus_infinity(never):
    """Only 3, 3, EOS is possible."""
    table = np.full_like(random_table(seed=15), never)
    first = child(0, 3, V)
    table[:, 0, 3] = table[:, first, 3] = table[:, child(first, 3, V), EOS] = 0
    ids, scores = search(table, [T, T], beam_width=4, num_best=4)
    assert (ids[:, 0] == [3, 3, EOS, 0]).all()
    np.testing.assert_array_equal(scores[:, 0], 0)
    assert (scores[:, 1:] == -np.inf).all()
    assert (ids[:, 1:] == PAD).all()


@pytest.mark.parametrize("never", [-1e9, -np.inf])
def test_an_impossible_end_is_no_finished_hypothesis(never):
    """Even at lengths at which the penalty is above 2."""
    longest, V = 30, 5

    def step(ids_BW, cache):
        logits_V = np.array([never, never, 0, never, never], "float32")
        B, W = ops.shape(ids_BW)
        return ops.broadcast_to(logits_V, (B, W, V)), cache

    ids, scores = beam_search(
        with_log_probs(step),
        ops.zeros((1, 2)),
        lambda cache, parent_BW: cache,
        max_lengths_B=ops.convert_to_tensor([longest]),
        max_length=longest,
        beam_width=2,
        alpha=1.0,
        eos=EOS,
    )
    assert scores.numpy().tolist() == [[0.0, -np.inf]]
    np.testing.assert_array_equal(ids[0, 0], np.full(longest, 2))


def test_xla_and_a_graph_find_what_eager_does():
    table = random_table(seed=16, batch_size=3)
    step, empty, reorder = table_step(table)

    def run(max_lengths_B, alpha):
        return beam_search(
            step,
            empty(3),
            reorder,
            max_lengths_B=max_lengths_B,
            max_length=T,
            beam_width=3,
            alpha=alpha,
            eos=EOS,
            num_best=3,
        )

    lengths_B = tf.constant([3, 2, T])
    for jit_compile in (False, True):
        graph = tf.function(run, jit_compile=jit_compile, autograph=False)
        for alpha in map(tf.constant, ALPHAS):
            eager = run(lengths_B, alpha)
            ids, scores = graph(lengths_B, alpha)
            np.testing.assert_array_equal(ids, eager.ids_BWT)
            np.testing.assert_allclose(scores, eager.scores_BW, rtol=1e-5)


def without_padding_id(step):
    """Returns `step` with log probabilities that rule out padding.

    The search of a model does the same.
    """

    def step_without(ids_BW, cache):
        logits_BWV, cache = step(ids_BW, cache)
        is_padding_V = ops.arange(logits_BWV.shape[-1]) == PAD
        return ops.where(is_padding_V, NEG_INF, logits_BWV), cache

    return with_log_probs(step_without)


W, LONGEST = 3, 6
RULES = {
    "max_length": LONGEST,
    "beam_width": W,
    "alpha": 0.6,
    "eos": EOS,
    "num_best": W,
}


def by_steps(model, source, lengths_B, room=None, **rules):
    """Returns what the Transformer's own step and cache find."""
    step, cache = model.start_decoding(source, W, room)
    return beam_search(
        without_padding_id(step),
        cache,
        decoder_cache.reorder,
        max_lengths_B=lengths_B,
        **RULES,
        **rules,
    )


def by_full_passes(model, source, lengths_B):
    """Returns what full passes find, with the history as the only cache."""

    def full_pass(ids_BW, cache):
        position, history_BWT = cache
        history_BWT = ops.slice_update(
            history_BWT, (0, 0, position), ids_BW[..., None]
        )
        history_NT = ops.reshape(history_BWT, (-1, LONGEST))
        logits = model((np.repeat(source, W, axis=0), history_NT))
        logits_BWV = ops.reshape(logits[:, position], (len(source), W, -1))
        return logits_BWV, (position + 1, history_BWT)

    def reorder(cache, parent_BW):
        position, history_BWT = cache
        return position, ops.take_along_axis(
            history_BWT, parent_BW[..., None], axis=1
        )

    nothing_BWT = ops.zeros((len(source), W, LONGEST), "int32")
    return beam_search(
        without_padding_id(full_pass),
        (ops.convert_to_tensor(0), nothing_BWT),
        reorder,
        max_lengths_B=lengths_B,
        **RULES,
    )


@pytest.mark.slow
@pytest.mark.parametrize(
    "hparams",
    [
        dataclasses.replace(
            TINY_MODELS["d_k_is_not_d_v"], num_layers=1, positions="learned"
        ),
        *(TINY_MODELS[name] for name in ("restricted", "marian", "pre_norm")),
    ],
)
def test_cached_decoding_finds_what_full_passes_do(hparams):
    """In one layer; test_cached_steps_equal_one_teacher_forced_pass has more.

    The cache has room for all tokens, or grows if shapes may change.
    """
    model = tiny_transformer(hparams)
    source = np.array([[2, 9, 4, 3, 1], [5, 8, 1, 0, 0]])
    lengths_B = ops.convert_to_tensor([4, LONGEST])  # The second may be longer.
    with_shapes_that_change = tf.function(
        lambda *ids: by_steps(model, *ids, drop_finished=True),
        input_signature=[
            tf.TensorSpec([None, None], tf.int32),
            tf.TensorSpec([None], tf.int32),
        ],
        autograph=False,
    )
    full = by_full_passes(model, source, lengths_B)
    for found in (
        by_steps(model, source, lengths_B, room=LONGEST),
        with_shapes_that_change(source, lengths_B),
    ):
        np.testing.assert_array_equal(found.ids_BWT, full.ids_BWT)
        np.testing.assert_allclose(found.scores_BW, full.scores_BW, atol=1e-4)


def test_gather_takes_from_each_sentence_its_own():
    x = np.random.default_rng(0).normal(size=(3, 5, 2))
    index = np.array([[4, 4], [0, 1], [3, 0]])
    expected = np.stack([x[b][index[b]] for b in range(3)])
    np.testing.assert_array_equal(rows.gather(x, index), expected)


def test_length_penalty_is_that_of_wu_et_al():
    for alpha in ALPHAS:
        found = ops.convert_to_numpy(
            search_module.length_penalty(np.array([1, 7, 25]), alpha)
        )
        expected = [((5 + n) / 6) ** alpha for n in (1, 7, 25)]
        np.testing.assert_allclose(found, expected, rtol=1e-6)
