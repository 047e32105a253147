"""A search toward a goal continues with what plain Python chooses."""

import numpy as np
import pytest

from t2t_lite.constraints.goals import best_and_nearer, best_in_turns
from t2t_lite.tensor import NEG_INF

B, W, P, K, EOS = 4, 3, 2, 6, 1
V = 390  # Three chunks.


def in_turns(alive_K, progress_K, beam_width):
    """Returns (log probability, place) of those that continue, best first."""
    groups = {}
    for place in np.argsort(-alive_K, kind="stable"):
        groups.setdefault(progress_K[place], []).append(place)
    turns = sorted(
        (turn + K * (alive_K[place] == NEG_INF), -progress, place)
        for progress, places in groups.items()
        for turn, place in enumerate(places)
    )
    kept = [place for *_, place in turns[:beam_width]]
    return sorted(((alive_K[n], n) for n in kept), key=lambda x: -x[0])


@pytest.mark.parametrize("seed", range(20))
def test_the_best_of_each_group_go_on_in_turns(seed):
    generator = np.random.default_rng(seed)
    alive_BK = generator.permuted(
        np.arange(-1.0 * B * K, 0.0, dtype="float32")
    ).reshape(B, K)
    alive_BK[generator.random((B, K)) < 0.3] = NEG_INF
    progress_BK = generator.integers(0, 3, (B, K)).astype("int32")
    log_probs_BW, kept_BW = map(
        np.asarray, best_in_turns(alive_BK, progress_BK, W)
    )
    for b in range(B):
        expected = in_turns(alive_BK[b], progress_BK[b], W)
        assert log_probs_BW[b].tolist() == [value for value, _ in expected]
        possible = log_probs_BW[b] > NEG_INF
        assert kept_BW[b][possible].tolist() == [
            place for value, place in expected if value > NEG_INF
        ]


def test_what_is_further_is_kept_however_unlikely():
    alive = np.array([[-1.0, -2.0, -3.0, -90.0]], "float32")
    progress = np.array([[0, 0, 0, 1]], "int32")
    log_probs, kept = best_in_turns(alive, progress, 2)
    assert np.asarray(kept).tolist() == [[0, 3]]
    assert np.asarray(log_probs).tolist() == [[-1.0, -90.0]]


def continuations(log_probs_WV, nearer_WP, wants_end_W):
    """Returns {place: log probability} of the expected continuations."""
    flat = {
        w * V + v: log_probs_WV[w, v]
        for w in range(W)
        for v in range(V)
        if not wants_end_W[w]
    }
    wanted = set(sorted(flat, key=lambda place: -flat[place])[:K])
    for w in range(W):
        wanted |= {w * V + v for v in (EOS, *nearer_WP[w]) if v >= 0}
        if not wants_end_W[w]:
            wanted.add(w * V + int(np.argmax(log_probs_WV[w])))
    found = {place: log_probs_WV[divmod(place, V)] for place in wanted}
    return {place: each for place, each in found.items() if each > NEG_INF}


@pytest.mark.parametrize("seed", range(20))
def test_the_best_and_what_is_nearer_are_there_once(seed):
    generator = np.random.default_rng(seed)
    logits_BWV = generator.normal(0.0, 2.0, (B, W, V)).astype("float32")
    logits_BWV[generator.random((B, W, V)) < 0.2] = NEG_INF
    added_BW = generator.normal(-4.0, 1.0, (B, W)).astype("float32")
    nearer_BWP = generator.integers(-1, V, (B, W, P)).astype("int32")
    wants_end_BW = generator.random((B, W)) < 0.4
    log_probs_BN, places_BN = map(
        np.asarray,
        best_and_nearer(
            logits_BWV,
            added_BW,
            nearer_BWP=nearer_BWP,
            wants_end_BW=wants_end_BW,
            K=K,
            eos=EOS,
        ),
    )
    log_probs_BWV = logits_BWV + added_BW[..., None]
    assert log_probs_BN.shape == places_BN.shape == (B, K + W * (2 + P))
    for b in range(B):
        found = [
            (int(place), value)
            for place, value in zip(places_BN[b], log_probs_BN[b], strict=True)
            if value > NEG_INF
        ]
        assert len(dict(found)) == len(found)
        assert dict(found) == continuations(
            log_probs_BWV[b], nearer_BWP[b], wants_end_BW[b]
        )
