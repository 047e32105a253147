"""Settings and fixtures of all tests: a quiet TensorFlow, and tiny models.

A test that takes `tiny_hparams` or `tiny_model` runs once for each of
TINY_MODELS. Their sizes differ, so that a test fails if an axis is wrong.
"""

import ctypes
import gc
import os
import sys

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
os.environ.setdefault("KERAS_BACKEND", "tensorflow")
# Tiny matrix products are slower on two threads, and tests run side by side.
# Parts of a batch are still computed in parallel.
os.environ.setdefault("TF_NUM_INTRAOP_THREADS", "1")
# Uses the kernels that bin/train uses, so that a run in a process of its own
# ends with the same bits as one in this process.
os.environ.setdefault("TF_ENABLE_ONEDNN_OPTS", "1")
# Otherwise one test process would take all the memory of a GPU.
os.environ.setdefault("TF_FORCE_GPU_ALLOW_GROWTH", "true")

import checkout  # noqa: F401, this checkout's packages
import pytest
from tiny_models import parameters, tiny_transformer


def pytest_collection_finish():
    """Makes TensorFlow build graphs faster, and run them unoptimized.

    Optimizing a graph takes longer than running it a few times, and recording
    where each operation was created takes a twentieth of all the time. (Remove
    these lines to see that place in error messages, after "defined at".)
    Programs that tests start as processes of their own still do both.
    """
    if tensorflow := sys.modules.get("tensorflow"):
        tensorflow.config.optimizer.set_experimental_options(
            {"disable_meta_optimizer": True}
        )
        stacks = sys.modules["tensorflow.python.util.tf_stack"]
        stack = stacks.extract_stack()
        stacks.extract_stack = lambda stacklevel=1: stack


@pytest.fixture(scope="module", autouse=True)
def _memory_is_given_back():
    """Frees the memory of each test module, since a process runs many modules.

    TensorFlow registers each custom gradient of a graph, such as the loss's,
    under a unique name and never removes it. This keeps the whole graph alive:
    90 MB for a run of a tiny model. Nothing needs the gradient once the graph
    is no longer used.
    """
    yield
    if framework := sys.modules.get("tensorflow.python.framework.ops"):
        gradients = framework.gradient_registry._registry
        names = [
            name for name in gradients if name.startswith("CustomGradient-")
        ]
        for name in names:
            del gradients[name]
        if names:
            gc.collect()
    libc = ctypes.CDLL(None)
    if hasattr(libc, "malloc_trim"):  # glibc keeps freed memory.
        libc.malloc_trim(0)


@pytest.fixture(params=parameters())
def tiny_hparams(request):
    """The HParams of each of TINY_MODELS."""
    return request.param


@pytest.fixture
def tiny_model(tiny_hparams):
    """A new Transformer of each of TINY_MODELS, with random weights."""
    return tiny_transformer(tiny_hparams)
