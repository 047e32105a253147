"""Models that are tables of logits, and what an exhaustive search finds."""

import itertools

import numpy as np
import reference
from keras import ops

from t2t_lite.decoding.beam_search import beam_search, with_log_probs

EOS = 1
V, T = 4, 4  # 81 hypotheses of T tokens without EOS, 40 that end with it.
ALL = 81  # A beam that holds every unfinished hypothesis of T tokens.
ALPHAS = [0.0, 0.6, 1.0]


def random_table(seed, batch_size=2, V=V, T=T, spread=2.0):
    """Returns float32 logits [B, N, V] after each of N prefixes, for B rows."""
    prefixes = (V**T - 1) // (V - 1)
    random = np.random.default_rng(seed)
    return random.normal(0, spread, (batch_size, prefixes, V)).astype("float32")


def child(prefix, token, V):
    """Returns the number of the prefix that has one token more.

    Prefixes are numbered breadth first, from 0 for the empty one, so every
    history has its own logits.
    """
    return prefix * V + token + 1


def table_step(table_BNV):
    """Returns (step, empty, reorder) of a model that is a table of logits.

    `empty` returns the first cache for a beam of some width. A cache is the
    length, the row of each sentence, and the prefix number of each hypothesis.
    """
    V = table_BNV.shape[-1]

    def step(ids_BW, cache):
        length, row_B, prefix_BW = cache
        # The token that the first step is given is not part of the prefix.
        prefix_BW = ops.where(length == 0, 0, child(prefix_BW, ids_BW, V))
        logits_BWV = ops.take_along_axis(
            ops.take(table_BNV, row_B, axis=0), prefix_BW[..., None], axis=1
        )
        return logits_BWV, (length + 1, row_B, prefix_BW)

    def reorder(cache, parent_BW):
        *rest, prefix_BW = cache
        return *rest, ops.take_along_axis(prefix_BW, parent_BW, axis=1)

    def empty(W):
        B = len(table_BNV)
        return (
            ops.convert_to_tensor(0),
            ops.arange(B),
            ops.zeros((B, W), "int32"),
        )

    return with_log_probs(step), empty, reorder


def search(table_BNV, max_lengths, max_length=None, beam_width=ALL, **kwargs):
    """Returns (ids_BWT, scores_BW) of a search over a table, in NumPy."""
    step, empty, reorder = table_step(table_BNV)
    found = beam_search(
        step,
        empty(beam_width),
        reorder,
        max_lengths_B=ops.convert_to_tensor(np.array(max_lengths, "int32")),
        max_length=max_length or max(max_lengths),
        beam_width=beam_width,
        eos=EOS,
        **{"alpha": 0.6} | kwargs,
    )
    assert found.scores_BW.dtype == "float32"
    return tuple(ops.convert_to_numpy(part) for part in found)


def log_prob(table_NV, ids):
    """Returns the log probability of the tokens `ids` in one row's table."""
    total, prefix = 0.0, 0
    for token in ids:
        total += reference.log_softmax(table_NV[prefix].astype("float64"))[
            token
        ]
        prefix = child(prefix, token, table_NV.shape[-1])
    return total


def exhaustive(table_NV, T, alpha):
    """Returns [(score, ids)], those with EOS before the rest, best first."""
    words = [v for v in range(table_NV.shape[-1]) if v != EOS]
    ended = [
        (*ids, EOS) for n in range(T) for ids in itertools.product(*[words] * n)
    ]
    unfinished = itertools.product(*[words] * T)

    def scored(group):
        return sorted(
            (
                (
                    log_prob(table_NV, ids)
                    / reference.length_penalty(len(ids), alpha),
                    ids,
                )
                for ids in group
            ),
            reverse=True,
        )

    return scored(ended) + scored(unfinished)


def without_padding(ids_T):
    """Returns the tuple of ids up to EOS; all of them if there is none."""
    ids = ids_T.tolist()
    return tuple(ids[: ids.index(EOS) + 1] if EOS in ids else ids)
