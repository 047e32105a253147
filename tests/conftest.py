"""What the tests share: quiet TensorFlow, and one list of tiny models.

A test that takes `tiny_hparams` or `tiny_model` runs once for each of
TINY_MODELS. Their sizes all differ, so that a wrong axis fails.
"""

import os

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
os.environ.setdefault("KERAS_BACKEND", "tensorflow")

import checkout  # noqa: F401, the code that these tests belong to
import pytest
from tiny_models import TINY_MODELS, tiny_transformer


@pytest.fixture(params=TINY_MODELS.values(), ids=TINY_MODELS.keys())
def tiny_hparams(request):
    """Each of TINY_MODELS."""
    return request.param


@pytest.fixture
def tiny_model(tiny_hparams):
    """A new Transformer of each of TINY_MODELS, with random weights."""
    return tiny_transformer(tiny_hparams)
