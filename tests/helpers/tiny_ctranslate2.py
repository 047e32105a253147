"""Tiny models with all that CTranslate2 can carry, and their directories."""

import dataclasses
import os
import random

import keras
import numpy as np
import tensorflow as tf
from tiny_models import AS_MARIAN
from tiny_translator import LEARNED, TINY, WORDS

from t2t_lite.decoding.search import SearchOptions
from t2t_lite.model.transformer import Transformer
from t2t_lite.storage import checkpoints
from t2t_lite.storage.model_directory import (
    ModelDirectory,
    Settings,
    named_tensors,
)
from t2t_lite.text.vocabulary import Vocabulary
from t2t_lite.token_ids import EOS

VARIANTS = {
    "d_k_is_not_d_v": dataclasses.replace(
        TINY, num_layers=1, num_decoder_layers=2
    ),
    "learned_and_d_k_is_above_d_v": dataclasses.replace(
        LEARNED, d_k=7, num_decoder_layers=1
    ),
    "marian": dataclasses.replace(
        TINY,
        num_layers=1,
        d_v=4,
        norm_epsilon=1e-2,
        **AS_MARIAN,
    ),
    "pre_norm": dataclasses.replace(
        TINY,
        num_layers=1,
        norm="pre",
        activation="gelu",
        attention_bias=True,
        tied_embeddings="input",
        embedding_scale=1.5,
    ),
    "two_vocabularies": dataclasses.replace(
        TINY, num_layers=1, tied_embeddings="target", embedding_scale=1.0
    ),
    "untied": dataclasses.replace(
        TINY, num_layers=1, tied_embeddings="none", logit_bias=True
    ),
}


# Amounts that are added to the logit of EOS.
NEVER, SOMETIMES = -12.0, 7.0
HAVE_TWO_VOCABULARIES = {"two_vocabularies", "untied"}


def random_model(hparams, vocabulary, seed=3, end=NEVER):
    """Returns a model none of whose weights has its initial value.

    Args:
        hparams: HParams.
        vocabulary: Vocabulary.
        seed: for everything random.
        end: the amount to add to the logit of EOS.
    """
    keras.utils.set_random_seed(seed)
    model = Transformer(hparams, vocabulary.size, vocabulary.target.size)
    model.build()
    generator = np.random.default_rng(seed)
    for variable in model.trainable_variables:
        noise = generator.normal(0, 0.2, variable.shape)
        factor = 1.5 if len(variable.shape) > 1 else 1
        variable.assign(variable * factor + noise)
    last = f"layer_{hparams.decoder_layers - 1}/feed_forward_norm"
    top = "top_norm" if hparams.norm == "pre" else last
    path = f"transformer/decoder/{top}/beta"
    (beta,) = [v for v in model.trainable_variables if v.path == path]
    row_D = model.output_embedding.embedding.numpy()[EOS]
    beta.assign(beta + end * row_D / (row_D @ row_D))
    return model


@dataclasses.dataclass
class Parts:
    """What `ctranslate2.write` takes, made from a Keras model."""

    model: Transformer
    vocabulary: Vocabulary
    splitting: dict | None = None

    @property
    def hparams(self):
        return self.model.hparams

    @property
    def weights(self):
        tensors = named_tensors(self.model.trainable_variables)
        return {name: tensor.numpy() for name, tensor in tensors.items()}


def random_sentences(count=50, seed=7):
    """Returns sentences of 1 to 12 words."""
    generator = random.Random(seed)
    return [
        " ".join(generator.choices(WORDS, k=generator.randint(1, 12))) + "."
        for _ in range(count)
    ]


FEW_TOKENS = {"max_extra_length": 5}


def search_options(parts, **changes):
    changes = {"length_penalty": 0.0} | changes
    return SearchOptions.from_hparams(parts.hparams, **changes)


def encoded(parts, lines):
    return tf.ragged.constant(parts.vocabulary.encode(lines), tf.int32)


def write_directory(path, parts):
    """Writes a model directory with a checkpoint of these parts."""
    directory = ModelDirectory(path)
    directory.path.mkdir()
    vocabulary = parts.vocabulary
    vocabulary.save_in(directory.path)
    has_two = vocabulary.target is not vocabulary
    directory.save_settings(
        Settings(
            hparams=parts.hparams,
            corpus={},
            data_sha256="of the text",
            vocabulary_sha256=vocabulary.sha256,
            vocabulary_size=vocabulary.size,
            target_vocabulary_size=vocabulary.target.size if has_two else None,
            micro_batch_tokens=100,
        )
    )
    checkpoints.write(
        directory.checkpoints / "step-1", parts.weights | {"step": 1}
    )
    return directory


def write_checkpoint(directory, parts, step, seed):
    model = random_model(parts.hparams, parts.vocabulary, seed)
    tensors = named_tensors(model.trainable_variables) | {"step": step}
    checkpoints.write(directory.checkpoints / f"step-{step}", tensors)


def conversions(directory):
    folder = directory.path / "ctranslate2"
    return sorted(os.listdir(folder)) if folder.exists() else []
