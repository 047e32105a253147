"""An alignment head gives the row where a token is predicted or read."""

import numpy as np
import pytest
import tensorflow as tf
from tiny_models import TINY_MODELS, tiny_transformer

from t2t_lite.model.alignment_head import AlignmentHead
from t2t_lite.model.multi_head_attention import record_weights
from t2t_lite.model.transformer import shift_right
from t2t_lite.token_ids import EOS, PAD

SOURCE_IDS = np.array([[5, 6, 7, EOS], [8, 3, EOS, PAD]], np.int32)
# The first two differ in length; the last two were cut off before EOS.
TARGET_IDS = np.array(
    [
        [4, 9, 2, EOS, PAD],
        [7, EOS, PAD, PAD, PAD],
        [3, 3, 5, 6, 2],
        [3, 3, 5, PAD, PAD],
    ],
    np.int32,
)


@pytest.fixture(scope="module")
def model():
    return tiny_transformer(TINY_MODELS["sinusoidal"])


def attended(model, head, source_ids, target_ids):
    """Returns a head's attention, and the weights of all heads of its layer."""
    source_ids, target_ids = tf.constant(source_ids), tf.constant(target_ids)
    with record_weights() as recorded:
        model((source_ids, shift_right(target_ids)))
    layer = model.decoder.layers[head.layer].memory_attention
    found = head.token_weights(model, recorded, target_ids)
    return found.numpy(), recorded[layer.path].numpy()


@pytest.mark.parametrize("head", [0, 1, None])
@pytest.mark.parametrize("reads", [False, True])
def test_a_token_that_another_follows_is_read_a_row_behind(model, head, reads):
    source_ids = SOURCE_IDS[[0, 1, 0, 0]]
    found_BTS, weights_BHTS = attended(
        model, AlignmentHead(-1, head, reads), source_ids, target_ids=TARGET_IDS
    )
    rows_BTS = (
        weights_BHTS.mean(axis=1) if head is None else weights_BHTS[:, head]
    )
    for found_TS, rows_TS, ids in zip(
        found_BTS, rows_BTS, TARGET_IDS, strict=True
    ):
        last = np.count_nonzero(ids) - 1
        rows = [*range(1, last + 1), last] if reads else range(last + 1)
        np.testing.assert_allclose(
            found_TS[: last + 1], rows_TS[list(rows)], atol=1e-6
        )
    assert np.ptp(rows_BTS[0, :4], axis=0).max() > 0.01  # The rows differ.


def test_padding_changes_nothing(model):
    head = AlignmentHead(0, 0, reads=True)
    together, _ = attended(model, head, SOURCE_IDS, target_ids=TARGET_IDS[:2])
    for n, (source, target) in enumerate(((4, 4), (3, 2))):
        alone, _ = attended(
            model,
            head,
            SOURCE_IDS[n : n + 1, :source],
            target_ids=TARGET_IDS[n : n + 1, :target],
        )
        np.testing.assert_allclose(
            together[n, :target, :source], alone[0], atol=1e-5
        )
