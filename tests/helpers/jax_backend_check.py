"""Computes logits, losses and searches on JAX; jax_backend_test runs it.

Usage: KERAS_BACKEND=jax python jax_backend_check.py FOLDER

It reads each FOLDER/NAME.input.npz, a model, and writes NAME.output.npz.
"""

import json
import pathlib
import string
import sys

sys.path.insert(0, str(pathlib.Path(__file__).absolute().parents[2] / "bin"))

import checkout  # noqa: F401, this checkout's packages
import keras
import numpy as np

from t2t_lite import hparams
from t2t_lite.constraints import (
    prefix,
    suppression,
    terms,
    token_constraints,
    words,
)
from t2t_lite.decoding import beam_search, sampling
from t2t_lite.model import cache as decoder_cache
from t2t_lite.model import loss, products, transformer


def main(folder):
    for path in pathlib.Path(folder).glob("*.input.npz"):
        write_results(
            path, path.with_name(path.name.replace("input", "output"))
        )


def write_results(input_path, output_path):
    given = np.load(input_path)
    settings = hparams.from_dict(json.loads(str(given["hparams"])))
    batch = given["source"], given["target"], given["every_search"]
    with keras.StatelessScope(initialize_variables=False):
        model = transformer.Transformer(settings)
        model.build()
    found = in_one_program(
        lambda: results(model, *batch),
        model.weights,
        [given[weight.path] for weight in model.weights],
    )
    np.savez(
        output_path,
        backend=keras.backend.backend(),
        imports_tensorflow="tensorflow" in sys.modules,
        **found,
    )


def in_one_program(function, weights, values):
    """Returns the result of a function that is compiled whole, to save time.

    Args:
        function: a function of no arguments.
        weights: Keras variables that it reads.
        values: an array for each of them.
    """
    import jax

    def with_weights(values):
        mapping = zip(weights, values, strict=True)
        with keras.StatelessScope(mapping, initialize_variables=False):
            return function()

    return jax.jit(with_weights)(values)


def with_gradients(function, *args):
    """Returns a function's result, and its gradients for all arguments."""
    if keras.backend.backend() == "jax":
        import jax

        every = tuple(range(len(args)))
        return jax.value_and_grad(function, every)(*args)
    import tensorflow as tf

    with tf.GradientTape() as tape:
        tape.watch(args)
        result = function(*args)
    return result, tape.gradient(result, args)


def steering(batch):
    """Returns a Constraint of several kinds at once."""
    letters = string.ascii_letters[: batch.num_target_ids - 2]
    token_bytes = [b"", b"", *(letter.encode() for letter in letters)]
    tokens = prefix.PrefixTokens(token_bytes)
    begun_BK = keras.ops.convert_to_tensor(np.array([[2, 3], [4, 0]], "int32"))
    return tokens.constraint(
        batch._replace(prefixes_BK3=tokens.places(begun_BK)),
        then=token_constraints.all_of(
            [
                token_constraints.min_length(batch, 3),
                token_constraints.no_repeated_ngrams(batch, 2),
                suppression.without_pieces([5], batch),
                suppression.WordAutomaton(["abc"], token_bytes).constraint(
                    batch
                ),
            ]
        ),
    )


def next_words(batch):
    """Returns the Constraint that allows one word after a prefix."""
    letters = string.ascii_letters[: batch.num_target_ids - 2]
    token_bytes = [b"", b"", *(letter.encode() for letter in letters)]
    token_bytes[3::2] = [b" " + text for text in token_bytes[3::2]]
    tokens = prefix.PrefixTokens(token_bytes)
    begun_BK = keras.ops.convert_to_tensor(np.array([[2, 3], [4, 0]], "int32"))
    batch = batch._replace(prefixes_BK3=tokens.forced(begun_BK))
    then = words.Words(token_bytes).stop_before_next_word(batch)
    return tokens.constraint(batch, then=then)


def required(batch):
    """Returns the Constraint that requires terms, here in the first row."""
    letters = string.ascii_letters[: batch.num_target_ids - 2]
    token_bytes = [b"", b"", *(f" {letter}".encode() for letter in letters)]
    asked = [[terms.Term((4, 5), 1), terms.Term((6,), 2)], []]
    terms_BCL = keras.ops.convert_to_tensor(terms.pack_terms(asked))
    return terms.constraint(
        words.Words(token_bytes), batch._replace(terms_BCL=terms_BCL)
    )


def results(model, source, target, every_search):
    """Returns {name: tensor} of what both backends must agree on.

    Args:
        model: Transformer.
        source: int [B, S].
        target: int [B, T].
        every_search: whether to search in every way, not only the plain one.
    """
    found = losses(model, source, target)
    for name, hypotheses in searches(model, source, every_search):
        found[f"{name}_ids"] = hypotheses.ids_BWT
        found[f"{name}_scores"] = hypotheses.scores_BW
    return found


def losses(model, source, target):
    """Returns {name: tensor} of logits, losses and gradients."""
    shifted = transformer.shift_right(target)
    logits = model((source, shifted))
    total, tokens = loss.cross_entropy(logits, target, 0.1)
    x = model.decode((source, shifted))
    embedding = keras.ops.cast(model.embedding.embedding, "float32")
    projected, (x_gradient, embedding_gradient) = with_gradients(
        lambda x, embedding: loss.projected_cross_entropy(
            x, embedding, target, label_smoothing=0.1, loss_scale=2.0
        )[0],
        x,
        embedding,
    )
    matrix = products.round_to_int8(keras.ops.transpose(embedding))
    x_ND = keras.ops.reshape(x, (-1, x.shape[-1]))
    return {
        "int8_product": products.multiply(x_ND, matrix, "float32"),
        "logits": logits,
        "loss": total,
        "tokens": tokens,
        "projected_loss": projected,
        "x_gradient": x_gradient,
        "embedding_gradient": embedding_gradient,
    }


def searches(model, source, every_search):
    """Yields the name and the Hypotheses of each kind of search."""
    width, longest = 3, 7
    logits_step, cache = model.start_decoding(source, width, longest)
    step = beam_search.with_log_probs(logits_step)
    max_lengths_B = keras.ops.convert_to_tensor(np.array([longest, 4], "int32"))
    shared = {
        "max_length": longest,
        "alpha": 0.6,
        "eos": transformer.EOS,
    }
    batch = token_constraints.SearchBatch(
        source_ids_BS=source,
        max_lengths_B=max_lengths_B,
        max_length=longest,
        beam_width=width,
        num_target_ids=model.num_target_ids,
    )
    steered = {
        "steered": steering,
        "next_words": next_words,
        "with_terms": required,
    }
    for name, constraint in {
        "plain": lambda _: None,
        **(steered if every_search else {}),
    }.items():
        yield (
            name,
            beam_search.beam_search(
                step,
                cache,
                decoder_cache.reorder,
                max_lengths_B=max_lengths_B,
                beam_width=width,
                num_best=width,
                constraint=constraint(batch),
                **shared,
            ),
        )
    if every_search:
        yield (
            "drawn",
            sampling.sample(
                step,
                cache,
                max_lengths_B,
                num_samples=width,
                sampling=sampling.Sampling(top_k=5, top_p=0.9, temperature=2.0),
                keys_B=sampling.row_keys(source, seed=6),
                **shared,
            ),
        )


if __name__ == "__main__":
    main(*sys.argv[1:])
