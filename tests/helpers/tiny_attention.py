"""Random attention weights, for drawing without a model."""

import numpy as np

from t2t_lite.visualization.maps import AttentionMap, AttentionMaps

# Tokens that could break out of a page, or be taken for something but text.
HOSTILE = [
    "</script><script>document.title = 'broken'</script>",
    "<!--",
    "]]>",
    "<img src=x onerror=alert(1)>",
    "\"'&amp;",
    "\\u003c",
    "{{data}}",
    "🙂",
    "👩‍👩‍👧",
    "שלום",
    "\u202eabc",
    "\u2028",
    "a\nb",
    "\u2581",
    "$x_$",
    "\\",
]


def softmax_of_noise(*shape, seed=0):
    """Returns float32 weights of that shape; the last axis sums to 1."""
    e = np.exp(np.random.default_rng(seed).normal(0, 2, shape))
    return (e / e.sum(axis=-1, keepdims=True)).astype(np.float32)


def made_up_maps(source, target, num_layers=2, num_heads=3):
    """Returns AttentionMaps of the given tokens, with random weights."""
    S, T = len(source), len(target)
    shape = num_layers, num_heads
    weights_NHTT = np.tril(softmax_of_noise(*shape, T, T, seed=1))
    return AttentionMaps(
        source=" ".join(source),
        target=" ".join(target),
        encoder_self=AttentionMap(
            source, source, softmax_of_noise(*shape, S, S)
        ),
        decoder_self=AttentionMap(
            target,
            ["<s>", *target[:-1]],
            weights_NHTT / weights_NHTT.sum(axis=-1, keepdims=True),
        ),
        encoder_decoder=AttentionMap(
            target, source, softmax_of_noise(*shape, T, S, seed=2)
        ),
    )
