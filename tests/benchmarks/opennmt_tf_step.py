"""Prints the median seconds of a training step of OpenNMT-tf's Transformer.

`training_step.py` runs this with the Python of an environment that has
OpenNMT-tf but not this package. The argument is a JSON object with the
vocabulary_size, the batch_size and the length of both sides.
"""

import json
import os
import pathlib
import sys
import tempfile

# Uses the kernels that bin/train uses; TensorFlow 2.13 has the same variable
# for them.
os.environ.setdefault("TF_ENABLE_ONEDNN_OPTS", "1")

import measuring
import numpy as np
import opennmt
import tensorflow as tf


def make_model(vocabulary_size, directory):
    """Returns the base model, post-norm and with one shared embedding."""
    path = pathlib.Path(directory) / "vocabulary.txt"
    # OpenNMT-tf adds one id, for unknown words.
    words = ["<blank>", "<s>", "</s>"]
    words += [f"w{n}" for n in range(vocabulary_size - 1 - len(words))]
    path.write_text("\n".join(words) + "\n")

    def embedder():
        return opennmt.inputters.WordEmbedder(embedding_size=512)

    model = opennmt.models.Transformer(
        embedder(),
        embedder(),
        num_layers=6,
        num_units=512,
        num_heads=8,
        ffn_inner_dim=2048,
        dropout=0.1,
        attention_dropout=0.0,
        ffn_dropout=0.0,
        pre_norm=False,
        share_embeddings=opennmt.models.EmbeddingsSharingLevel.ALL,
    )
    model.initialize(
        {"source_vocabulary": str(path), "target_vocabulary": str(path)},
        params={"label_smoothing": 0.1},
    )
    model.create_variables()
    return model


def main(sizes):
    batch_size, length = sizes["batch_size"], sizes["length"]
    with tempfile.TemporaryDirectory() as directory:
        model = make_model(sizes["vocabulary_size"], directory)
    optimizer = tf.keras.optimizers.Adam(1e-4, 0.9, 0.98, 1e-9)
    optimizer.build(model.trainable_variables)
    lengths = tf.fill([batch_size], length)
    ids = np.random.default_rng(0).integers(
        3, sizes["vocabulary_size"] - 1, (2, batch_size, length)
    )
    source, target = map(tf.constant, ids)
    shifted = tf.concat(
        [tf.fill([batch_size, 1], tf.constant(1, tf.int64)), target[:, :-1]], 1
    )

    @tf.function
    def step(source, shifted, target):
        features = {"ids": source, "length": lengths}
        labels = {"ids": shifted, "ids_out": target, "length": lengths}
        with tf.GradientTape() as tape:
            outputs, _ = model(features, labels, training=True)
            loss, normalizer, *_ = model.compute_loss(outputs, labels)
            loss /= normalizer
        gradients = tape.gradient(loss, model.trainable_variables)
        optimizer.apply_gradients(
            zip(gradients, model.trainable_variables, strict=True)
        )
        return loss

    print(
        measuring.median_seconds(lambda: step(source, shifted, target).numpy())
    )


if __name__ == "__main__":
    main(json.loads(sys.argv[1]))
