"""The model that benchmarks on real text train: 3 + 3 layers, d_model 256.

Its settings are not a preset, since presets change with what translates best:
figures of different versions would be of different models.
"""

SETTINGS = {
    "num_layers": 3,
    "d_model": 256,
    "d_ff": 1024,
    "num_heads": 4,
    "d_k": 64,
    "d_v": 64,
    "dropout": 0.3,
    "vocabulary_size": 8000,
    "tokens_per_batch": 2048,
    "max_length": 128,
    "learning_rate_scale": 0.7,
    "warmup_steps": 1000,
    "steps": 4000,
}


def hparams():
    """Returns the HParams: those of base, except for SETTINGS."""
    from t2t_lite.hparams import HParams

    return HParams(**SETTINGS)


def training_flags(*given):
    """Returns the flags of bin/train that choose this model.

    Args:
        *given: names of settings to leave out, given by other flags.
    """
    overrides = [
        f"--override={name}={value}"
        for name, value in SETTINGS.items()
        if name not in given
    ]
    return ["--hparams=transformer_base", *overrides]
