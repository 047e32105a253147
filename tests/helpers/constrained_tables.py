"""Searches of tables with a constraint, beside what brute force finds."""

import numpy as np
from keras import ops
from search_tables import (
    EOS,
    V,
    exhaustive,
    random_table,
    search,
    without_padding,
)

from t2t_lite.constraints.token_constraints import SearchBatch

T = 4


# The text of each id of a table.
TEXTS = [b" a", b"", b"a", b"b"]


def everything(T=T):
    """Returns the width of a beam that holds every hypothesis."""
    return 3**T


def batch(num_rows=1, T=T, **others):
    return SearchBatch(
        source_ids_BS=np.ones((num_rows, 1), "int32"),
        max_lengths_B=ops.convert_to_tensor(np.full(num_rows, T, "int32")),
        max_length=T,
        beam_width=everything(T),
        **{"num_target_ids": V} | others,
    )


def text_of(ids, texts=TEXTS):
    return b"".join(texts[i] for i in ids).decode()


def ended(table_NV, T=T):
    """Returns [(score, ids)] of what finishes, best first."""
    return [pair for pair in exhaustive(table_NV, T, 0.6) if EOS in pair[1]]


def assert_finds(ids_WT, scores_W, expected):
    """Checks that the finished hypotheses are just the expected ones."""
    found = [without_padding(ids_T) for ids_T in ids_WT]
    is_possible = scores_W > -np.inf
    is_ended = [EOS in ids for ids in found] & is_possible
    assert sum(is_ended) == len(expected)
    for n, (score, ids) in enumerate(expected):
        assert found[n] == ids
        np.testing.assert_allclose(scores_W[n], score, rtol=1e-5)


def assert_constrained(constraint, is_right, T=T):
    table = random_table(seed=11, batch_size=1, T=T)
    pairs = ended(table[0], T)
    expected = [pair for pair in pairs if is_right(pair[1])]
    assert 0 < len(expected) < len(pairs)
    W = everything(T)
    ids_BWT, scores_BW = search(
        table, [T], constraint=constraint, num_best=W, beam_width=W
    )
    assert_finds(ids_BWT[0], scores_BW[0], expected)
    return [*map(without_padding, ids_BWT[0][scores_BW[0] > -np.inf])]
