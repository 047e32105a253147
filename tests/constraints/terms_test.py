"""A search with required terms finds what brute force over tables finds."""

import itertools

import numpy as np
import pytest
import reference
from keras import ops
from search_tables import (
    EOS,
    child,
    exhaustive,
    log_prob,
    random_table,
    search,
    without_padding,
)

from t2t_lite.constraints import terms, token_constraints
from t2t_lite.constraints.prefix import PrefixTokens
from t2t_lite.constraints.terms import Term, pack_terms
from t2t_lite.constraints.token_constraints import SearchBatch
from t2t_lite.constraints.words import Words
from t2t_lite.tensor import NEG_INF

T = 5
WORDS = [b"", b"", b" a", b" b", b" c"]  # Each token is a word.
PARTS = [b"", b"", b" a", b"a", b" b"]  # "a" continues a word.


def text_of(ids, texts):
    return b"".join(texts[i] for i in ids if i != EOS).decode()


def counts(ids, term, texts):
    """Returns how often a term occurs in a text as whole words."""
    words = text_of(ids, texts).split()
    looked_for = text_of(term, texts).split()
    n = len(looked_for)
    return sum(words[i : i + n] == looked_for for i in range(len(words)))


def batch_of(asked, texts, beam_width):
    """Returns a SearchBatch of sentences, given the Terms asked of each."""
    B = len(asked)
    return SearchBatch(
        source_ids_BS=np.ones((B, 1), "int32"),
        max_lengths_B=ops.convert_to_tensor([T] * B, "int32"),
        max_length=T,
        beam_width=beam_width,
        num_target_ids=len(texts),
        terms_BCL=ops.convert_to_tensor(pack_terms(asked)),
    )


def all_found_by(table, constraint, beam_width):
    """Returns [(score, ids)] of what finished, for each sentence of a table."""
    ids_BWT, scores_BW = search(
        table,
        [T] * len(table),
        constraint=constraint,
        num_best=beam_width,
        beam_width=beam_width,
    )
    return [
        [
            (score, ids)
            for score, ids in zip(
                scores_W, map(without_padding, ids_WT), strict=True
            )
            if EOS in ids and score > -np.inf
        ]
        for ids_WT, scores_W in zip(ids_BWT, scores_BW, strict=True)
    ]


def found_by(table, constraint, beam_width):
    """Returns what `all_found_by` does, for the only sentence of a table."""
    (found,) = all_found_by(table, constraint, beam_width)
    return found


def all_found_with(table, asked, texts, beam_width):
    """Returns what `all_found_by` does, given the Terms of each sentence."""
    of_batch = batch_of(asked, texts, beam_width)
    constraint = terms.constraint(Words(texts), of_batch)
    return all_found_by(table, constraint, beam_width)


def found_with(table, asked, texts, beam_width):
    """Returns what `all_found_with` does, for the only sentence of a table."""
    (found,) = all_found_with(table, [asked], texts, beam_width=beam_width)
    return found


def table_of(texts, seed, batch_size=1):
    table = random_table(seed, batch_size, V=len(texts), T=T)
    table[..., 0] = NEG_INF  # Padding.
    return table


ASKED = [
    [Term((2,), 1)],
    [Term((3,), 2)],
    [Term((2, 3), 1)],
    [Term((2, 3, 4), 1)],
    [Term((2, 2), 1)],
    [Term((2, 4), 1), Term((3,), 1)],
    [Term((2,), 1), Term((3,), 1), Term((4,), 1)],
]


@pytest.mark.parametrize("asked", ASKED)
def test_all_that_has_its_terms_is_found_best_first(asked):
    table = table_of(WORDS, seed=2)
    table[..., EOS] -= 10  # The model never prefers to end.
    expected = [
        (score, ids)
        for score, ids in exhaustive(table[0], T, alpha=0.6)
        if EOS in ids
        and 0 not in ids
        and all(counts(ids, t.ids, WORDS) == t.count for t in asked)
    ]
    found = found_with(table, asked, WORDS, beam_width=3**T)
    assert found
    assert [ids for _, ids in found] == [ids for _, ids in expected]
    scores, expected_scores = (
        [score for score, _ in pairs] for pairs in (found, expected)
    )
    np.testing.assert_allclose(scores, expected_scores, rtol=1e-5)


@pytest.mark.parametrize("texts", [WORDS, PARTS])
@pytest.mark.parametrize("seed", range(3))
def test_a_narrow_beam_finds_what_has_all_its_terms(texts, seed):
    """However unlikely they are, each occurs as often as asked for."""
    asked = [*ASKED, [Term((2, 3), 1), Term((4,), 2)]]
    table = table_of(texts, seed, batch_size=len(asked))
    if texts is PARTS:
        table[:, 0, 3] = NEG_INF  # No text begins within a word.
        asked = [[t for t in each if 3 not in t.ids] for each in asked]
    for n, each in enumerate(asked):
        table[n][:, [term.ids[0] for term in each]] -= 20
    found = all_found_with(table, asked, texts, beam_width=4)
    for of_sentence, each in zip(found, asked, strict=True):
        assert of_sentence
        for _, ids in of_sentence:
            for term in each:
                assert counts(ids, term.ids, texts) == term.count


def test_where_a_model_would_end_only_terms_go_on():
    """Wherever the model would end with a term missing, the term comes next."""
    table = table_of(WORDS, seed=6)
    table[:, :, EOS] += 20
    table[:, 0, EOS] -= 40  # But not at the start.
    found = found_with(table, [Term((2, 3), 1)], WORDS, beam_width=3**T)
    texts = {text_of(ids, WORDS) for _, ids in found}
    ends = {"", " b", " c"}  # After " a", the term has begun.
    assert {text[: text.index(" a b")] for text in texts} == ends


A, B, C = (2, EOS), (3, 2, 4, EOS), (4, 2, 3, 4, EOS)


def test_what_is_less_likely_is_no_better_for_being_longer():
    """Otherwise a search would continue it for as long as there is room."""
    table = table_of_three([0.52, 0.48, 1e-9])
    log_probs = [log_prob(table[0], ids) for ids in (A, B)]
    assert log_probs[0] > log_probs[1]
    assert score(table, A) < score(table, B)
    assert best_of_three(table, num_best=1) == [A]


def test_what_is_likelier_than_one_of_the_best_may_be_better():
    table = table_of_three([0.36, 0.31, 0.33])
    scores = [score(table, ids) for ids in (A, B, C)]
    assert scores == sorted(scores)
    assert best_of_three(table, num_best=2) == [C, B]


def table_of_three(probabilities):
    """Returns a table in which A, B and C have these probabilities."""
    table = np.full_like(table_of(WORDS, seed=0), -20)
    for ids, probability in zip((A, B, C), probabilities, strict=True):
        table[0, 0, ids[0]] = np.log(probability)
        prefix = 0
        for token, following in itertools.pairwise(ids):
            prefix = child(prefix, token, len(WORDS))
            table[0, prefix, following] = 20
    return table


def score(table, ids):
    penalty = reference.length_penalty(len(ids), 0.6)
    return log_prob(table[0], ids) / penalty


def best_of_three(table, num_best):
    constraint = terms.constraint(
        Words(WORDS), batch_of([[Term((2,), 1)]], WORDS, beam_width=4)
    )
    ids_BWT, _ = search(
        table, [T], constraint=constraint, num_best=num_best, beam_width=4
    )
    return [without_padding(ids) for ids in ids_BWT[0, :num_best]]


def test_a_prefix_may_go_on_where_the_model_would_end():
    table = table_of(WORDS, seed=6)
    table[..., EOS] += 20
    tokens = PrefixTokens(WORDS)
    of_batch = batch_of([[Term((2,), 1)]], WORDS, beam_width=3**T)._replace(
        prefixes_BK3=tokens.places(ops.convert_to_tensor([[3, 4]]))
    )
    constraint = tokens.constraint(
        of_batch, then=terms.constraint(Words(WORDS), of_batch)
    )
    found = found_by(table, constraint, beam_width=3**T)
    texts = [text_of(ids, WORDS) for _, ids in found]
    assert texts[0] == " b c a"
    assert all(text.startswith(" b c a") for text in texts)


def test_what_is_complete_may_go_on_to_the_least_length():
    table = table_of(WORDS, seed=6)
    table[..., EOS] += 20
    of_batch = batch_of([[Term((2,), 1)]], WORDS, beam_width=3**T)
    constraint = token_constraints.all_of(
        [
            terms.constraint(Words(WORDS), of_batch),
            token_constraints.min_length(of_batch, 3),
        ]
    )
    found = found_by(table, constraint, beam_width=3**T)
    assert found
    assert all(len(ids) > 3 and ids.count(2) == 1 for _, ids in found)


def test_nothing_ends_a_term_as_another_word():
    """If there is no room for the term again, the hypothesis is no result."""
    table = table_of(PARTS, seed=3)
    table[:, 0, 3] = NEG_INF
    of_batch = batch_of([[Term((2,), 1)]], PARTS, beam_width=4)
    ids_BWT, scores_BW = search(
        table,
        [T],
        constraint=terms.constraint(Words(PARTS), of_batch),
        num_best=4,
        beam_width=4,
    )
    for ids_T, score in zip(ids_BWT[0], scores_BW[0], strict=True):
        ids = without_padding(ids_T)
        assert score == -np.inf or (EOS in ids and counts(ids, (2,), PARTS))


def test_a_term_within_a_longer_one_comes_once_more():
    table = table_of(WORDS, seed=4)
    table[..., EOS] -= 10
    asked = [Term((2,), 1), Term((2, 3), 1)]
    found = found_with(table, asked, WORDS, beam_width=3**T)
    texts = {text_of(ids, WORDS) for _, ids in found}
    assert " a b" in texts
    assert " a a b" in texts
    assert " a a" not in texts


def test_terms_are_packed_with_their_counts():
    rows = pack_terms([[Term((5, 6), 1), Term((7,), 3)], []])
    assert rows.shape == (2, 4, 5)
    assert rows[0, :3].tolist() == [
        [1, 5, 6, 0, 0],
        [3, 7, 0, 0, 0],
        [0, 0, 0, 0, 0],
    ]
    assert not rows[1].any()
