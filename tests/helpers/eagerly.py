"""Functions without their graphs."""

import contextlib

import tensorflow as tf


@contextlib.contextmanager
def eagerly():
    """Runs operation by operation what would take longer to trace."""
    tf.config.run_functions_eagerly(True)
    try:
        yield
    finally:
        tf.config.run_functions_eagerly(False)
