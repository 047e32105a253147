"""Computes logits, losses and a beam search on JAX; jax_backend_test runs it.

Usage: KERAS_BACKEND=jax python jax_backend_check.py INPUT.npz OUTPUT.npz
"""

import json
import pathlib
import string
import sys

sys.path.insert(0, str(pathlib.Path(__file__).absolute().parents[2] / "bin"))

import checkout  # noqa: F401, the code that this belongs to
import keras
import numpy as np

from t2t_lite import hparams
from t2t_lite.decoding import (
    beam_search,
    constraints,
    prefix,
    sampling,
    suppression,
    terms,
    words,
)
from t2t_lite.model import cache as decoder_cache
from t2t_lite.model import loss, transformer


def main(input_path, output_path):
    given = np.load(input_path)
    model = transformer.Transformer(
        hparams.from_dict(json.loads(str(given["hparams"])))
    )
    model.build()
    for weight in model.weights:
        weight.assign(given[weight.path])
    np.savez(
        output_path,
        backend=keras.backend.backend(),
        imports_tensorflow="tensorflow" in sys.modules,
        **results(model, given["source"], given["target"]),
    )


def with_gradients(function, *args):
    """Returns what a function returns, and its gradients by all arguments."""
    if keras.backend.backend() == "jax":
        import jax

        every = tuple(range(len(args)))
        return jax.jit(jax.value_and_grad(function, every))(*args)
    import tensorflow as tf

    with tf.GradientTape() as tape:
        tape.watch(args)
        result = function(*args)
    return result, tape.gradient(result, args)


def steering(batch):
    """Returns the Constraint of all kinds at once."""
    letters = string.ascii_letters[: batch.num_target_ids - 2]
    token_bytes = [b"", b"", *(letter.encode() for letter in letters)]
    tokens = prefix.PrefixTokens(token_bytes)
    begun_BK = keras.ops.convert_to_tensor(np.array([[2, 3], [4, 0]], "int32"))
    return tokens.constraint(
        batch._replace(prefixes_BK3=tokens.places(begun_BK)),
        then=constraints.all_of(
            [
                constraints.min_length(batch, 3),
                constraints.no_repeated_ngrams(batch, 2),
                suppression.without_pieces([5], batch),
                suppression.WordAutomaton(["abc"], token_bytes).constraint(
                    batch
                ),
            ]
        ),
    )


def next_words(batch):
    """Returns the Constraint to one word behind a prefix."""
    letters = string.ascii_letters[: batch.num_target_ids - 2]
    token_bytes = [b"", b"", *(letter.encode() for letter in letters)]
    token_bytes[3::2] = [b" " + text for text in token_bytes[3::2]]
    tokens = prefix.PrefixTokens(token_bytes)
    begun_BK = keras.ops.convert_to_tensor(np.array([[2, 3], [4, 0]], "int32"))
    batch = batch._replace(prefixes_BK3=tokens.only(begun_BK))
    then = words.Words(token_bytes).next_one(batch)
    return tokens.constraint(batch, then=then)


def required(batch):
    """Returns the Constraint to terms in each row."""
    letters = string.ascii_letters[: batch.num_target_ids - 2]
    token_bytes = [b"", b"", *(f" {letter}".encode() for letter in letters)]
    asked = [[terms.Term((4, 5), 1), terms.Term((6,), 2)], []]
    terms_BCL = keras.ops.convert_to_tensor(terms.packed(asked))
    return terms.constraint(
        words.Words(token_bytes), batch._replace(terms_BCL=terms_BCL)
    )


def results(model, source, target):
    """Returns {name: array} of what both backends must agree on."""
    to_array = keras.ops.convert_to_numpy
    shifted = transformer.shift_right(target)
    logits = model((source, shifted))
    total, tokens = loss.cross_entropy(logits, target, 0.1)
    x = model.decode((source, shifted))
    embedding = keras.ops.cast(model.embedding.embedding, "float32")
    projected, (x_gradient, embedding_gradient) = with_gradients(
        lambda *args: loss.projected_cross_entropy(*args, target, 0.1, 2.0)[0],
        x,
        embedding,
    )
    width, longest = 3, 7
    logits_step, cache = model.start_decoding(source, width, longest)
    step = beam_search.with_log_probs(logits_step)
    max_lengths_B = keras.ops.convert_to_tensor(np.array([longest, 4], "int32"))
    batch = constraints.Batch(
        source, max_lengths_B, longest, width, model.num_target_ids
    )
    found, steered, in_words, with_terms = (
        beam_search.beam_search(
            step,
            cache,
            decoder_cache.reorder,
            max_lengths_B,
            max_length=longest,
            beam_width=width,
            alpha=0.6,
            eos=transformer.EOS,
            num_best=width,
            constraint=constraint,
        )
        for constraint in (
            None,
            steering(batch),
            next_words(batch),
            required(batch),
        )
    )
    drawn = sampling.sample(
        step,
        cache,
        max_lengths_B,
        max_length=longest,
        num_samples=width,
        alpha=0.6,
        eos=transformer.EOS,
        sampling=sampling.Sampling(top_k=5, top_p=0.9, temperature=2.0),
        keys_B=sampling.row_keys(source, seed=6),
    )
    return {
        "logits": to_array(logits),
        "loss": to_array(total),
        "tokens": to_array(tokens),
        "projected_loss": to_array(projected),
        "x_gradient": to_array(x_gradient),
        "embedding_gradient": to_array(embedding_gradient),
        "ids": to_array(found.ids_BWT),
        "scores": to_array(found.scores_BW),
        "steered_ids": to_array(steered.ids_BWT),
        "steered_scores": to_array(steered.scores_BW),
        "word_ids": to_array(in_words.ids_BWT),
        "word_scores": to_array(in_words.scores_BW),
        "term_ids": to_array(with_terms.ids_BWT),
        "term_scores": to_array(with_terms.scores_BW),
        "drawn_ids": to_array(drawn.ids_BWT),
    }


if __name__ == "__main__":
    main(*sys.argv[1:])
