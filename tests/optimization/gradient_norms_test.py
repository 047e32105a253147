"""The gradient norms of layers, which cover every weight."""

import numpy as np
import tensorflow as tf
from tiny_models import tiny_transformer

from t2t_lite.optimization.gradient_norms import GradientNorms


def test_a_norm_is_that_of_all_weights_of_a_layer():
    norms = GradientNorms(
        [
            "transformer/encoder/layer_0/feed_forward/hidden/kernel",
            "transformer/embedding/embedding",
            "transformer/encoder/layer_0/feed_forward/output/bias",
        ]
    )
    assert norms.layers == ["encoder/layer_0/feed_forward", "embedding"]
    gradients = [
        tf.constant([[1.0, -2.0]]),
        tf.constant([3.0]),
        tf.constant([[2.0], [4.0]]),
    ]
    np.testing.assert_allclose(norms(gradients), [5.0, 3.0])


def test_every_weight_is_part_of_a_layer(tiny_hparams):
    weights = tiny_transformer(tiny_hparams, vocabulary_size=11).weights
    norms = GradientNorms([weight.path for weight in weights])
    total = sum(np.sum(np.square(weight.numpy())) for weight in weights)
    found = norms([weight.value for weight in weights])
    np.testing.assert_allclose(np.sum(np.square(found)), total, rtol=1e-5)
    sublayers = 2 * tiny_hparams.num_layers + 3 * tiny_hparams.decoder_layers
    tables = sum("positions" in layer for layer in norms.layers)
    ends = {"embedding", "source_embedding", "output_embedding"}
    ends |= {"encoder/top_norm", "decoder/top_norm"}
    others = len(ends.intersection(norms.layers)) + tables
    # Each sublayer's layer norm counts as a layer, too.
    assert len(norms.layers) == 2 * sublayers + others


def test_a_gradient_that_is_not_finite_spoils_the_norm_of_its_layer_alone():
    norms = GradientNorms(["t/embedding/w", "t/decoder/layer_0/norm/w"])
    found = norms([tf.constant([1.0]), tf.constant([np.nan, 1.0])])
    assert np.isfinite(found).tolist() == [True, False]
