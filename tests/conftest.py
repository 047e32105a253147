"""What the tests share: quiet TensorFlow of one thread, and tiny models.

A test that takes `tiny_hparams` or `tiny_model` runs once for each of
TINY_MODELS. Their sizes all differ, so that a wrong axis fails.
"""

import ctypes
import gc
import os
import sys

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
os.environ.setdefault("KERAS_BACKEND", "tensorflow")
# Tiny products are slower on two threads, and tests run side by side; what
# runs in parts at the same time does so all the same.
os.environ.setdefault("TF_NUM_INTRAOP_THREADS", "1")
# By the kernels that bin/train takes, for runs in processes of their own to
# end with the same bits.
os.environ.setdefault("TF_ENABLE_ONEDNN_OPTS", "1")
# Nor may one process of the tests take all the memory of a GPU.
os.environ.setdefault("TF_FORCE_GPU_ALLOW_GROWTH", "true")

import checkout  # noqa: F401, the code that these tests belong to
import pytest
from tiny_models import parameters, tiny_transformer


def pytest_collection_finish():
    """Has TensorFlow make graphs faster, and run them as they are.

    To optimize one takes longer than to run it a few times, and to note for
    each operation where it was made is a twentieth of all the time. (Without
    these lines an error says it: "defined at".) The binaries that tests start
    as processes of their own do both.
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
    """Frees what the tests of a module left, for one process runs many.

    TensorFlow registers each custom gradient of a graph, as the loss has one,
    for ever under a name of its own, and with it the whole graph: 90 MB for a
    run of a tiny model. Nobody asks for it once the graph is done with.
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
    if hasattr(libc, "malloc_trim"):  # glibc keeps what is freed.
        libc.malloc_trim(0)


@pytest.fixture(params=parameters())
def tiny_hparams(request):
    """Each of TINY_MODELS."""
    return request.param


@pytest.fixture
def tiny_model(tiny_hparams):
    """A new Transformer of each of TINY_MODELS, with random weights."""
    return tiny_transformer(tiny_hparams)
