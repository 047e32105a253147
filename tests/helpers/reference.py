"""The paper in NumPy, float64: what the tests compare with.

Written for the eye, one sentence and one head at a time, and independent of
t2t_lite. Masks are bool, True where attention is allowed.
"""

import numpy as np


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
        weights: {"query", "key", "value", "output"}, all heads side by side.
        num_heads: int, h.
        may_attend_LM: bool.
    """
    per_head = {
        name: np.split(weights[name], num_heads, axis=1)
        for name in ("query", "key", "value")
    }
    heads = [
        attention(x_LD @ W_Q, memory_MD @ W_K, memory_MD @ W_V, may_attend_LM)
        for W_Q, W_K, W_V in zip(*per_head.values(), strict=True)
    ]
    return np.concatenate(heads, axis=-1) @ weights["output"]


def feed_forward(x_LD, weights):
    """Section 3.3, Eq. 2: max(0, x W_1 + b_1) W_2 + b_2."""
    hidden = x_LD @ weights["hidden/kernel"] + weights["hidden/bias"]
    output = np.maximum(0, hidden) @ weights["output/kernel"]
    return output + weights["output/bias"]


def layer_norm(x, weights, epsilon=1e-6):
    """Ba et al. 2016: gamma (x - mean) / sqrt(variance + epsilon) + beta."""
    mean = np.mean(x, axis=-1, keepdims=True)
    variance = np.mean((x - mean) ** 2, axis=-1, keepdims=True)
    normal = (x - mean) / np.sqrt(variance + epsilon)
    return weights["gamma"] * normal + weights["beta"]


def position_encodings(positions, d_model):
    """Section 3.5: PE(pos, 2i) = sin(pos / 10000^(2i / d)), 2i + 1 its cos."""
    encodings_LD = np.zeros((len(positions), d_model))
    for row, pos in enumerate(positions):
        for i in range(d_model // 2):
            angle = pos / 10000 ** (2 * i / d_model)
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


def encoder_layer(x_SD, weights, num_heads, may_attend_SS):
    """Section 3.1: LayerNorm(x + Sublayer(x)) for both sub-layers."""
    x = layer_norm(
        x_SD
        + multi_head_attention(
            x_SD,
            x_SD,
            below(weights, "self_attention"),
            num_heads,
            may_attend_SS,
        ),
        below(weights, "self_attention_norm"),
    )
    return layer_norm(
        x + feed_forward(x, below(weights, "feed_forward")),
        below(weights, "feed_forward_norm"),
    )


def decoder_layer(
    x_TD, memory_SD, weights, num_heads, may_attend_TT, may_attend_memory_TS
):
    """Section 3.1: LayerNorm(x + Sublayer(x)) for all three sub-layers."""
    x = x_TD
    for name, memory, may_attend in (
        ("self_attention", None, may_attend_TT),
        ("memory_attention", memory_SD, may_attend_memory_TS),
    ):
        attended = multi_head_attention(
            x,
            x if memory is None else memory,
            below(weights, name),
            num_heads,
            may_attend,
        )
        x = layer_norm(x + attended, below(weights, f"{name}_norm"))
    return layer_norm(
        x + feed_forward(x, below(weights, "feed_forward")),
        below(weights, "feed_forward_norm"),
    )


def embed(ids_L, embedding_VD, stack):
    """Sections 3.4 and 3.5: E[ids] sqrt(d_model) + positions.

    Args:
        ids_L: int.
        embedding_VD: E.
        stack: weights of the encoder or decoder; a table of positions among
            them replaces the sines and cosines.
    """
    L, D = len(ids_L), embedding_VD.shape[-1]
    x_LD = embedding_VD[ids_L] * np.sqrt(D)
    if "positions/table" in stack:
        return x_LD + stack["positions/table"][:L]
    return x_LD + position_encodings(range(L), D)


def nearby(L, window):
    """Returns bool [L, L]: position i to those less than window / 2 away.

    Section 4: a neighbourhood of size r; all positions where it is 0.
    """
    distance_LL = np.abs(np.arange(L)[:, None] - np.arange(L))
    return distance_LL < (window / 2 if window else L)


def encode(weights, hparams, source_ids_S):
    """Returns memory_SD for one sentence; id 0 is padding."""
    stack = below(weights, "encoder")
    S = len(source_ids_S)
    may_attend_SS = np.tile(source_ids_S != 0, (S, 1))
    may_attend_SS &= nearby(S, hparams.attention_window)
    x = embed(source_ids_S, weights["embedding/embedding"], stack)
    for n in range(hparams.num_layers):
        layer = below(stack, f"layer_{n}")
        x = encoder_layer(x, layer, hparams.num_heads, may_attend_SS)
    return x


def transformer(weights, hparams, source_ids_BS, target_ids_BT):
    """Returns logits_BTV: the whole forward pass, section 3.

    Args:
        weights: what `weights_of` returns for a Transformer.
        hparams: its HParams.
        source_ids_BS: int, 0 for padding.
        target_ids_BT: int, shifted right already.
    """
    embedding_VD = weights["embedding/embedding"]
    stack = below(weights, "decoder")
    logits = []
    for source_ids, target_ids in zip(
        source_ids_BS, target_ids_BT, strict=True
    ):
        memory_SD = encode(weights, hparams, source_ids)
        T = len(target_ids)
        is_past_TT = np.tril(np.ones((T, T), bool))
        x = embed(target_ids, embedding_VD, stack)
        for n in range(hparams.decoder_layers):
            x = decoder_layer(
                x,
                memory_SD,
                below(stack, f"layer_{n}"),
                hparams.num_heads,
                is_past_TT & nearby(T, hparams.attention_window),
                np.tile(source_ids != 0, (T, 1)),
            )
        logits.append(x @ embedding_VD.T)
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

    In the form of the section's last paragraph, where epsilon is added before
    the correction of the biases.
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
