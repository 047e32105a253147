"""The paper in NumPy and float64, for tests to compare with.

Written to be easy to read, one sentence and one head at a time, and independent
of t2t_lite. Masks are bool, True where attention is allowed. What only other
programs' models have is chosen by a Style or HParams, or is an optional weight.
"""

import math
from typing import NamedTuple

import numpy as np


class Style(NamedTuple):
    """How layers compute where there is a choice: the paper's by default."""

    norm: str = "post"
    norm_epsilon: float = 1e-6
    activation: str = "relu"


_PAPER = Style()


def weights_of(model):
    """Returns {path below the model: float64 array} of a built Keras model."""
    return {
        weight.path.removeprefix(f"{model.name}/"): np.asarray(
            weight, np.float64
        )
        for weight in model.weights
    }


def softmax(x):
    """Returns the softmax over the last axis; -inf has weight 0."""
    e = np.exp(x - np.max(x, axis=-1, keepdims=True))
    return e / np.sum(e, axis=-1, keepdims=True)


def log_softmax(x):
    """Returns the logarithm of the softmax over the last axis."""
    x = x - np.max(x, axis=-1, keepdims=True)
    return x - np.log(np.sum(np.exp(x), axis=-1, keepdims=True))


def attention(q_LK, k_MK, v_MK, may_attend_LM=True):
    """Section 3.2.1, Eq. 1: softmax(Q K^T / sqrt(d_k)) V."""
    d_k = q_LK.shape[-1]
    logits_LM = q_LK @ k_MK.T / np.sqrt(d_k)
    return softmax(np.where(may_attend_LM, logits_LM, -np.inf)) @ v_MK


def multi_head_attention(x_LD, memory_MD, weights, num_heads, may_attend_LM):
    """Section 3.2.2: Concat(head_1 .. head_h) W^O.

    Args:
        x_LD: queries.
        memory_MD: keys and values.
        weights: {"query", "key", "value", "output"}, all heads side by side;
            "query_bias" and "output_bias" are optional.
        num_heads: int, h.
        may_attend_LM: bool.
    """
    per_head = {
        name: np.split(weights[name], num_heads, axis=1)
        for name in ("query", "key", "value")
    }
    no_bias = np.zeros(weights["query"].shape[1])
    biases = np.split(weights.get("query_bias", no_bias), num_heads)
    heads = [
        attention(
            x_LD @ W_Q + b_Q,
            memory_MD @ W_K,
            memory_MD @ W_V,
            may_attend_LM=may_attend_LM,
        )
        for b_Q, W_Q, W_K, W_V in zip(biases, *per_head.values(), strict=True)
    ]
    output = np.concatenate(heads, axis=-1) @ weights["output"]
    return output + weights.get("output_bias", 0)


def gelu(x):
    """Hendrycks & Gimpel 2016: x times the normal distribution function."""
    return x * (1 + np.vectorize(math.erf)(x / math.sqrt(2))) / 2


ACTIVATIONS = {
    "relu": lambda x: np.maximum(0, x),
    "swish": lambda x: x / (1 + np.exp(-x)),
    "gelu": gelu,
}


def feed_forward(x_LD, weights, activation="relu"):
    """Section 3.3, Eq. 2: max(0, x W_1 + b_1) W_2 + b_2."""
    hidden = x_LD @ weights["hidden/kernel"] + weights["hidden/bias"]
    output = ACTIVATIONS[activation](hidden) @ weights["output/kernel"]
    return output + weights["output/bias"]


def layer_norm(x, weights, epsilon=1e-6):
    """Ba et al. 2016: gamma (x - mean) / sqrt(variance + epsilon) + beta."""
    mean = np.mean(x, axis=-1, keepdims=True)
    variance = np.mean((x - mean) ** 2, axis=-1, keepdims=True)
    normal = (x - mean) / np.sqrt(variance + epsilon)
    return weights["gamma"] * normal + weights["beta"]


def position_encodings(positions, d_model, marian=False):
    """Section 3.5: PE(pos, 2i) = sin(pos / 10000^(2i / d)); 2i + 1 has cos.

    In Marian, the angle is pos / 10000^(i / (d / 2 - 1)).
    """
    last = d_model - 2 if marian else d_model
    encodings_LD = np.zeros((len(positions), d_model))
    for row, pos in enumerate(positions):
        for i in range(d_model // 2):
            angle = pos / 10000 ** (2 * i / last)
            encodings_LD[row, 2 * i] = np.sin(angle)
            encodings_LD[row, 2 * i + 1] = np.cos(angle)
    return encodings_LD


def below(weights, name):
    """Returns the weights below `name`, as paths from there."""
    start = f"{name}/"
    return {
        path.removeprefix(start): value
        for path, value in weights.items()
        if path.startswith(start)
    }


def add_and_norm(x, sublayer, weights, style):
    """Section 3.1: LayerNorm(x + Sublayer(x)); pre-norm x + Sublayer(LN(x))."""
    if style.norm == "pre":
        return x + sublayer(layer_norm(x, weights, style.norm_epsilon))
    return layer_norm(x + sublayer(x), weights, style.norm_epsilon)


def encoder_layer(x_SD, weights, num_heads, may_attend_SS, style=_PAPER):
    """Section 3.1: both sub-layers, each with Add & Norm."""

    def self_attention(x):
        part = below(weights, "self_attention")
        return multi_head_attention(
            x, x, part, num_heads=num_heads, may_attend_LM=may_attend_SS
        )

    def apply_feed_forward(x):
        part = below(weights, "feed_forward")
        return feed_forward(x, part, style.activation)

    x = x_SD
    for name, sublayer in (
        ("self_attention", self_attention),
        ("feed_forward", apply_feed_forward),
    ):
        x = add_and_norm(
            x, sublayer, below(weights, f"{name}_norm"), style=style
        )
    return x


def decoder_layer(
    x_TD,
    memory_SD,
    weights,
    num_heads,
    may_attend_TT,
    may_attend_memory_TS,
    style=_PAPER,
):
    """Section 3.1: all three sub-layers, each with Add & Norm."""

    def self_attention(x):
        part = below(weights, "self_attention")
        return multi_head_attention(
            x, x, part, num_heads=num_heads, may_attend_LM=may_attend_TT
        )

    def memory_attention(x):
        part = below(weights, "memory_attention")
        return multi_head_attention(
            x,
            memory_SD,
            part,
            num_heads=num_heads,
            may_attend_LM=may_attend_memory_TS,
        )

    def apply_feed_forward(x):
        part = below(weights, "feed_forward")
        return feed_forward(x, part, style.activation)

    x = x_TD
    for name, sublayer in (
        ("self_attention", self_attention),
        ("memory_attention", memory_attention),
        ("feed_forward", apply_feed_forward),
    ):
        x = add_and_norm(
            x, sublayer, below(weights, f"{name}_norm"), style=style
        )
    return x


def embed(ids_L, embedding_VD, stack, hparams):
    """Sections 3.4 and 3.5: E[ids] sqrt(d_model) + positions.

    Args:
        ids_L: int.
        embedding_VD: E.
        stack: weights of the encoder or decoder, and "is_decoder". If there
            is a table of positions, it replaces the sines and cosines.
        hparams: HParams.
    """
    L, D = len(ids_L), embedding_VD.shape[-1]
    x_LD = embedding_VD[ids_L] * (hparams.embedding_scale or np.sqrt(D))
    if stack["is_decoder"] and hparams.decoder_start == "zeros":
        x_LD[0] = 0
    if "positions/table" in stack:
        return x_LD + stack["positions/table"][:L]
    is_marian = hparams.positions == "marian"
    return x_LD + position_encodings(range(L), D, is_marian)


def style_of(hparams):
    """Returns the Style of HParams."""
    return Style(hparams.norm, hparams.norm_epsilon, hparams.activation)


def top(x, stack, hparams):
    """Returns the output of a stack; pre-norm stacks end with a norm."""
    if hparams.norm == "post":
        return x
    return layer_norm(x, below(stack, "top_norm"), hparams.norm_epsilon)


def nearby(L, window):
    """Returns bool [L, L]: whether positions are less than window / 2 apart.

    Section 4: a neighborhood of size r. A window of 0 allows all positions.
    """
    distance_LL = np.abs(np.arange(L)[:, None] - np.arange(L))
    return distance_LL < (window / 2 if window else L)


def encode(weights, hparams, source_ids_S):
    """Returns memory_SD for one sentence; id 0 is padding."""
    stack = below(weights, "encoder") | {"is_decoder": False}
    style, shared = style_of(hparams), weights["embedding/embedding"]
    S = len(source_ids_S)
    may_attend_SS = np.tile(source_ids_S != 0, (S, 1))
    may_attend_SS &= nearby(S, hparams.attention_window)
    embedding_VD = weights.get("source_embedding/embedding", shared)
    x = embed(source_ids_S, embedding_VD, stack, hparams=hparams)
    for n in range(hparams.num_layers):
        layer = below(stack, f"layer_{n}")
        x = encoder_layer(
            x,
            layer,
            hparams.num_heads,
            may_attend_SS=may_attend_SS,
            style=style,
        )
    return top(x, stack, hparams)


def transformer(weights, hparams, source_ids_BS, target_ids_BT):
    """Returns logits_BTV: the whole forward pass, section 3.

    Args:
        weights: what `weights_of` returns for a Transformer.
        hparams: its HParams.
        source_ids_BS: int, 0 for padding.
        target_ids_BT: int, already shifted right.
    """
    embedding_VD = weights["embedding/embedding"]
    stack = below(weights, "decoder") | {"is_decoder": True}
    output = below(weights, "embedding") | below(weights, "output_embedding")
    logits = []
    for source_ids, target_ids in zip(
        source_ids_BS, target_ids_BT, strict=True
    ):
        memory_SD = encode(weights, hparams, source_ids)
        T = len(target_ids)
        is_past_TT = np.tril(np.ones((T, T), bool))
        x = embed(target_ids, embedding_VD, stack, hparams=hparams)
        for n in range(hparams.decoder_layers):
            x = decoder_layer(
                x,
                memory_SD,
                below(stack, f"layer_{n}"),
                num_heads=hparams.num_heads,
                may_attend_TT=is_past_TT & nearby(T, hparams.attention_window),
                may_attend_memory_TS=np.tile(source_ids != 0, (T, 1)),
                style=style_of(hparams),
            )
        x = top(x, stack, hparams)
        logits.append(x @ output["embedding"].T + output.get("logit_bias", 0))
    return np.stack(logits)


def smoothed_targets(target_ids_BT, V, label_smoothing):
    """Returns q_BTV: 1 - e on the token, and e / V on every id."""
    one_hot_BTV = np.eye(V)[target_ids_BT]
    return (1 - label_smoothing) * one_hot_BTV + label_smoothing / V


def cross_entropy(logits_BTV, target_ids_BT, label_smoothing):
    """Returns (sum of -sum_v q log p over tokens that are not 0, their count).

    Source: section 5.4; Szegedy et al. 2015, section 7.
    """
    q = smoothed_targets(target_ids_BT, logits_BTV.shape[-1], label_smoothing)
    loss_BT = -np.sum(q * log_softmax(logits_BTV), axis=-1)
    is_token_BT = target_ids_BT != 0
    return np.sum(loss_BT[is_token_BT]), np.sum(is_token_BT)


def learning_rate(step, d_model, warmup_steps):
    """Section 5.3, Eq. 3; the first step is 1."""
    return d_model**-0.5 * min(step**-0.5, step * warmup_steps**-1.5)


def adam(x, gradients, learning_rates, beta1=0.9, beta2=0.98, epsilon=1e-9):
    """Returns x after one update per gradient; Kingma & Ba 2015, section 2.

    In the form of that section's last paragraph, which adds epsilon before bias
    correction.
    """
    m = v = 0.0
    for t, (g, rate) in enumerate(
        zip(gradients, learning_rates, strict=True), start=1
    ):
        m = beta1 * m + (1 - beta1) * g
        v = beta2 * v + (1 - beta2) * g**2
        rate = rate * np.sqrt(1 - beta2**t) / (1 - beta1**t)
        x = x - rate * m / (np.sqrt(v) + epsilon)
    return x


def length_penalty(length, alpha):
    """Wu et al. 2016, Eq. 14: ((5 + length) / 6)^alpha."""
    return ((5 + length) / 6) ** alpha
