"""A list of tiny models, and functions to make them.

Their sizes mostly differ, so that a wrong axis fails.
"""

import dataclasses

import numpy as np
import pytest

from t2t_lite.hparams import HParams

_SINUSOIDAL = HParams(
    num_layers=2,
    d_model=12,
    d_ff=20,
    num_heads=3,
    d_k=4,
    d_v=4,
    vocabulary_size=11,
    tokens_per_batch=64,
    max_length=16,
    learned_positions=16,
    num_buckets=3,
    warmup_steps=10,
    steps=20,
)

# What Marian's models have, and the paper's does not.
AS_MARIAN = {
    "positions": "marian",
    "activation": "swish",
    "attention_bias": True,
    "logit_bias": True,
    "decoder_start": "zeros",
}

TINY_MODELS = {
    "sinusoidal": _SINUSOIDAL,
    "learned": dataclasses.replace(_SINUSOIDAL, positions="learned"),
    # d_model is not h * d_k.
    "d_k_is_not_d_v": dataclasses.replace(_SINUSOIDAL, d_model=14, d_v=5),
    "shallow_decoder": dataclasses.replace(
        _SINUSOIDAL,
        num_decoder_layers=1,
        dropout=0.2,
        attention_dropout=0.3,
        relu_dropout=0.4,
    ),
    "restricted": dataclasses.replace(
        _SINUSOIDAL, num_layers=1, attention_window=5
    ),
    "marian": dataclasses.replace(
        _SINUSOIDAL,
        num_layers=1,
        norm_epsilon=1e-5,
        tied_embeddings="target",
        **AS_MARIAN,
    ),
    "pre_norm": dataclasses.replace(
        _SINUSOIDAL,
        num_layers=1,
        norm="pre",
        activation="gelu",
        tied_embeddings="input",
        embedding_scale=1.0,
    ),
}

# For tests of a single model: its unusual settings are independent of each
# other.
COMBINED = dataclasses.replace(
    _SINUSOIDAL,
    num_layers=1,
    positions="learned",
    d_model=14,
    d_v=5,
    attention_window=5,
)

# Quick tests use these, slow ones the others.
QUICK = "sinusoidal", "restricted", "marian", "pre_norm"


def parameters(quick=QUICK):
    """Returns the pytest parameters for each of TINY_MODELS.

    Args:
        quick: names of those that are not marked as slow.
    """
    return [
        pytest.param(
            hparams, id=name, marks=() if name in quick else pytest.mark.slow
        )
        for name, hparams in TINY_MODELS.items()
    ]


def tiny_transformer(hparams, seed=0, **kwargs):
    """Returns a built Transformer with no weight that is all 0 or all 1.

    Args:
        hparams: HParams, such as one of TINY_MODELS.
        seed: int; the same seed gives the same weights.
        **kwargs: those of Transformer.
    """
    # Imported here, so that tests of lower layers need no higher ones.
    import keras

    from t2t_lite.model.transformer import Transformer

    keras.utils.set_random_seed(seed)
    model = Transformer(hparams, **kwargs)
    model.build()
    random = np.random.default_rng(seed)
    for weight in model.weights:
        weight.assign_add(random.normal(0, 0.2, weight.shape))
    return model
