"""How large the gradient of each layer is."""

from collections.abc import Sequence

import tensorflow as tf


class GradientNorms:
    """For each layer, the norm of the gradient of all its weights.

    Args:
        paths: of the weights, as their variables have them.
    """

    def __init__(self, paths: Sequence[str]):
        layers = list(map(_layer, paths))
        self.layers = list(dict.fromkeys(layers))  # G, in the weights' order
        self._layer_of_weight = list(map(self.layers.index, layers))

    def __call__(self, gradients: Sequence[tf.Tensor]) -> tf.Tensor:
        """Returns the norms, float32 [G].

        A norm whose square overflows float32 counts as infinite, because the
        second moment that Adam takes of it is infinite too.

        Args:
            gradients: of the weights, in the order of their paths.
        """
        # Half the square of a norm, without a copy of the gradient.
        halves = tf.stack([tf.nn.l2_loss(gradient) for gradient in gradients])
        totals_G = tf.math.unsorted_segment_sum(
            halves, self._layer_of_weight, len(self.layers)
        )
        return tf.sqrt(2 * totals_G)


def _layer(path: str) -> str:
    """Returns the name of the layer that a weight is part of.

    >>> _layer("transformer/encoder/layer_0/feed_forward/hidden/kernel")
    'encoder/layer_0/feed_forward'
    >>> _layer("transformer/embedding/embedding")
    'embedding'
    """
    _, *layers, _ = path.split("/")  # The model, layers, and the weight.
    return "/".join(layers[:3])
