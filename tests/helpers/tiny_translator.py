"""A tiny model with random weights whose translations are words."""

import dataclasses
import itertools

import keras
import numpy as np

from t2t_lite.hparams import HParams
from t2t_lite.model.transformer import Transformer
from t2t_lite.storage import checkpoints, model_directory
from t2t_lite.storage.model_directory import ModelDirectory, Settings
from t2t_lite.text import learning

MAX_LENGTH = 23
TINY = HParams(
    num_layers=2,
    d_model=12,
    d_ff=20,
    num_heads=3,
    d_k=4,
    d_v=5,
    tokens_per_batch=100,
    max_length=MAX_LENGTH,
    beam_width=4,
    max_extra_length=6,
)
# The table of positions has no more rows than a source can have tokens.
LEARNED = HParams(
    **(TINY.__dict__ | {"positions": "learned", "learned_positions": 23})
)

# Its graphs are traced in half the time.
ONE_LAYER = HParams(**(TINY.__dict__ | {"num_layers": 1}))
# Another inner size, activation and window, and another start of the decoder.
OTHER = dataclasses.replace(
    ONE_LAYER,
    d_ff=16,
    activation="gelu",
    attention_window=3,
    decoder_start="zeros",
)

_WORDS = (
    "the a dog cat boat sees old red two men ball on water runs by grass tree "
    "sits near house and bird over hill"
)
WORDS = _WORDS.split()
LINES = [
    "the dog",
    "a red ball on the old boat by the water",
    "",
    "men",
    "two men and a bird over the hill near a tree",
    "the old cat sits on grass",
    "a dog runs",
]


def sentence(num_words, start=0):
    """Returns a sentence of that many words, each of one id, and a period."""
    words = itertools.islice(itertools.cycle(WORDS), start, start + num_words)
    return " ".join(words) + "."


def learn_vocabulary():
    """Returns a vocabulary in which each of WORDS and the period is one id."""
    lines = [" ".join(WORDS[n:] + WORDS[:n]) for n in range(24)]
    return learning.learn([*lines, "."], "bpe", 1000)


def random_model(hparams, vocabulary, seed=3):
    """Returns a random model whose translations depend on the source."""
    keras.utils.set_random_seed(seed)
    target = vocabulary.target
    model = Transformer(hparams, vocabulary.size, target.size)
    model.build()
    for variable in model.trainable_variables:
        if len(variable.shape) > 1:
            variable.assign(variable * 3.0)
    # Suppresses bytes, so that each id that is found shows in the text.
    names = target.tokens(range(target.size))
    is_byte = ["<0x" in name for name in names]
    embedding = model.embedding.trainable_variables[0]
    embedding.assign(np.where(np.array(is_byte)[:, None], 0.0, embedding))
    return model


def write_model(path, vocabulary, hparams=TINY, seeds=(3,)):
    """Writes a model directory, as a run does, with a checkpoint per seed."""
    directory = ModelDirectory(path)
    directory.path.mkdir()
    vocabulary.save_in(directory.path)
    has_two = vocabulary.target is not vocabulary
    directory.save_settings(
        Settings(
            hparams=hparams,
            corpus={},
            data_sha256="of the text",
            vocabulary_sha256=vocabulary.sha256,
            vocabulary_size=vocabulary.size,
            target_vocabulary_size=vocabulary.target.size if has_two else None,
            micro_batch_tokens=100,
        )
    )
    for step, seed in enumerate(seeds, start=1):
        model = random_model(hparams, vocabulary, seed)
        tensors = model_directory.named_tensors(model.trainable_variables)
        checkpoints.write(
            directory.checkpoints / f"step-{step}", tensors | {"step": step}
        )
    return directory


def assert_same(found, expected):
    """Checks that texts are the same, and scores up to the order of sums."""
    assert len(found) == len(expected)
    for some, others in zip(found, expected, strict=True):
        assert [t.text for t in some] == [t.text for t in others]
        scores = [[t.score for t in ts] for ts in (some, others)]
        np.testing.assert_allclose(*scores, atol=1e-4)
