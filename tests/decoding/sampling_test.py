"""Samples follow the probabilities that they are drawn from."""

import numpy as np
import pytest
import reference
from keras import ops
from search_tables import EOS, child, log_prob, random_table, table_step
from tiny_searches import PREFIXES, eager_search
from tiny_translator import LINES, ONE_LAYER, assert_same

from t2t_lite.decoding.sampling import Sampling, row_keys, sample
from t2t_lite.decoding.search import SearchOptions
from t2t_lite.decoding.steering import Steering
from t2t_lite.tensor import NEG_INF
from t2t_lite.translation.line_translator import LineTranslator

V, T = 6, 3
ROWS, W = 400, 50
COUNT = ROWS * W
# Exceeded by chance 1 time in 1,000, by degrees of freedom up to V - 1.
LARGEST_CHI_SQUARED = {1: 10.8, 2: 13.8, 3: 16.3, 4: 18.5, 5: 20.5}


_ALL = Sampling()


def draw(sampling=_ALL, table=None, T=T, seed=0, **others):
    """Returns (ids_BWT, scores_BW) of samples, all rows from the same table."""
    if table is None:
        table = random_table(seed=2, batch_size=1, V=V, T=T, spread=1.0)
    step, empty, _ = table_step(np.repeat(table, ROWS, axis=0))
    sources = np.arange(2, 2 + ROWS, dtype="int32")[:, None]
    found = sample(
        step,
        empty(W),
        ops.convert_to_tensor(np.full(ROWS, T, "int32")),
        max_length=T,
        num_samples=W,
        eos=EOS,
        sampling=sampling,
        keys_B=row_keys(sources, seed),
        **{"alpha": 0.0} | others,
    )
    return tuple(ops.convert_to_numpy(part) for part in found)


def assert_drawn_from(counts, p):
    """Checks by chi-squared that counts fit that many draws from p."""
    assert not counts[p == 0].any()
    expected = p[p > 0] * counts.sum()
    chi_squared = ((counts[p > 0] - expected) ** 2 / expected).sum()
    assert chi_squared < LARGEST_CHI_SQUARED[len(expected) - 1]


@pytest.mark.parametrize(
    "sampling",
    [
        Sampling(),
        Sampling(temperature=0.5),
        Sampling(temperature=2.0),
        Sampling(top_k=3),
        Sampling(top_k=2, temperature=3.0),
        Sampling(top_p=0.7),
        Sampling(top_p=0.9, temperature=2.0),
        Sampling(top_k=4, top_p=0.8),
    ],
)
def test_tokens_are_drawn_from_the_softmax(sampling):
    table = random_table(seed=2, batch_size=1, V=V, T=T, spread=1.0)
    logits_V = table[0, 0].astype("float64") / sampling.temperature
    order_V = np.argsort(-logits_V)
    logits_V[order_V[sampling.top_k or V :]] = -np.inf
    p_V = np.exp(reference.log_softmax(logits_V))
    share_V = np.cumsum(p_V[order_V])
    beyond = np.searchsorted(share_V, sampling.top_p) + 1
    if sampling.top_p < 1:
        p_V[order_V[beyond:]] = 0
    ids, _ = draw(sampling, table)
    counts = np.bincount(ids[..., 0].ravel(), minlength=V)
    assert counts.sum() == COUNT
    assert_drawn_from(counts, p_V / p_V.sum())


def test_later_tokens_are_drawn_independently_of_earlier_ones():
    """The tokens after each first token follow a softmax of their own."""
    table = random_table(seed=2, batch_size=1, V=V, T=T, spread=1.0)
    ids, _ = draw(table=table)
    for first in (0, 2, 3):
        nexts = ids[ids[..., 0] == first][:, 1]
        logits_V = table[0, child(0, first, V)].astype("float64")
        counts = np.bincount(nexts, minlength=V)
        assert_drawn_from(counts, np.exp(reference.log_softmax(logits_V)))


def test_samples_of_a_row_and_rows_differ():
    ids, _ = draw()
    assert len({row.tobytes() for row in ids}) == ROWS
    assert len({each.tobytes() for each in ids[0]}) > W // 4
    others, _ = draw(seed=1)
    assert np.mean(ids == others) < 0.9


def test_scores_are_those_of_the_model_best_first():
    table = random_table(seed=2, batch_size=1, V=V, T=T, spread=1.0)
    ids, scores = draw(Sampling(temperature=2.0, top_k=4), table, alpha=0.6)
    assert np.all(np.diff(scores, axis=1) <= 0)
    for ids_T, score in zip(ids[0], scores[0], strict=True):
        tokens = ids_T.tolist()
        if EOS in tokens:
            tokens = tokens[: tokens.index(EOS) + 1]
        # Id 0 is a token of the table, but `sample` takes it for padding.
        if 0 not in tokens:
            expected = log_prob(table[0], tokens)
            expected /= reference.length_penalty(len(tokens), 0.6)
            np.testing.assert_allclose(score, expected, rtol=1e-5)


@pytest.mark.parametrize("offset", [-20.0, 20.0])
@pytest.mark.parametrize("temperature", [1e-9, 1e-30, 1e-38])
def test_the_likeliest_is_drawn_at_the_lowest_temperatures(temperature, offset):
    table = random_table(seed=2, batch_size=1, V=V, T=1) + offset
    table[..., 0] = NEG_INF  # As padding is.
    ids, scores = draw(Sampling(temperature=temperature), table, T=1)
    assert (ids == table.argmax()).all()
    assert np.isfinite(scores).all()


def test_rows_depend_on_their_ids_alone():
    ids = np.array([[5, 6, 1], [6, 5, 1], [5, 6, 1]], "int32")
    padded = np.pad(ids, ((0, 2), (0, 4)))
    keys = ops.convert_to_numpy(row_keys(ids, 3))
    again = ops.convert_to_numpy(row_keys(padded, 3))[:3]
    assert keys.tolist() == again.tolist()
    assert keys[0] == keys[2] != keys[1]
    assert keys.tolist() != ops.convert_to_numpy(row_keys(ids, 4)).tolist()


@pytest.fixture(scope="module")
def drawn(steered):
    """A LineTranslator that samples."""
    return steered(
        sample_top_k=30,
        sample_top_p=0.95,
        temperature=1.5,
        nbest=3,
        seed=5,
        min_length=2,
    )


@pytest.mark.slow
def test_what_is_drawn_depends_on_the_line_alone(drawn, model, vocabulary):
    found = drawn.translate(LINES)
    assert_same(drawn.translate(LINES[::-1]), found[::-1])
    for line, of_line in zip(LINES, found, strict=True):
        assert_same(drawn.translate([line]), [of_line])
    texts = {t.text for of_line in found for t in of_line}
    assert len(texts) > 2 * len(LINES)
    for seed in (5, 6):
        options = drawn.options._replace(seed=seed)
        steering = Steering(options, vocabulary)
        hypotheses = eager_search(
            model, vocabulary, options, LINES[:1], steering.constraint
        )
        others = vocabulary.decode(hypotheses.ids_BWT[0].numpy())
        is_same = others == [t.text for t in found[0]]
        assert is_same == (seed == 5)


@pytest.mark.slow
def test_xla_draws_the_same(drawn, model, vocabulary):
    compiled = LineTranslator.from_model(
        model, vocabulary, drawn.options, xla=True
    )
    lines = LINES[::3]  # All of one shape.
    assert_same(compiled.translate(lines), drawn.translate(lines))


@pytest.mark.slow
def test_the_likeliest_alone_is_what_a_beam_of_one_finds(model, vocabulary):
    drawn, greedy = (
        eager_search(
            model,
            vocabulary,
            SearchOptions.from_hparams(ONE_LAYER, **options),
            [line for line in LINES if line],
        )
        for options in ({"sample_top_k": 1}, {"beam_width": 1})
    )
    np.testing.assert_array_equal(drawn.ids_BWT, greedy.ids_BWT)
    np.testing.assert_allclose(drawn.scores_BW, greedy.scores_BW, atol=1e-4)


@pytest.mark.slow
def test_what_is_drawn_keeps_to_what_steers(steered):
    drawn = steered(sample_top_p=1.0, suppress=["the"])
    found = drawn(LINES, prefix=PREFIXES)
    for text, prefix, line in zip(found, PREFIXES, LINES, strict=True):
        assert text.startswith(prefix) or not line
        rest = text.removeprefix("the c").removeprefix(prefix)
        assert "the" not in rest.split()
