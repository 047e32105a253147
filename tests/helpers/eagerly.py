"""TensorFlow functions that run without graphs."""

import contextlib

import tensorflow as tf


@contextlib.contextmanager
def eagerly():
    """Makes tf.functions run eagerly, for those that take longer to trace."""
    tf.config.run_functions_eagerly(True)
    try:
        yield
    finally:
        tf.config.run_functions_eagerly(False)
