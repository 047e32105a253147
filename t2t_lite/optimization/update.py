"""What is known about an update of the model once it is done."""

from typing import NamedTuple

import tensorflow as tf

from t2t_lite.optimization.sharding import Batch


class Update(NamedTuple):
    """What one update reports; it may still be computed on the device."""

    loss: tf.Tensor  # float32 [], nats a token, label smoothing included
    tokens: tf.Tensor  # float32 [], target tokens
    gradient_norms: tf.Tensor  # float32 [G], those of GradientNorms
    step: int  # updates done, including it
    batch: Batch  # without links, which may be large
