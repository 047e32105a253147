"""How many weights the model has, and operations its matrix products take.

Operations are those of floating point: a product of an [m, k] and a [k, n]
matrix counts 2 m n k. All products of the model are counted: the projections
of attention, queries by keys, weights by values, both products of the
feed-forward layers, and the pre-softmax. Softmax, layer normalization,
dropout, ReLU, biases, residual additions and the loss are left out, and
looking up embeddings takes none.
"""

from t2t_lite.hparams import HParams
from t2t_lite.model import windows

# A sentence of WMT has about 20 words: with punctuation and words that are
# split, 25 to 30 tokens. Little depends on it: 25 or 30 change an update of the
# base model by 0.1%.
TYPICAL_LENGTH = 28
_PRODUCTS_PER_UPDATE = 3  # One forward; two backward: by weight and by input.


def forward_flops(
    hparams: HParams,
    vocabulary_size: int,
    batch_size: float,
    source_length: float,
    target_length: float,
) -> float:
    """Returns the floating-point operations of a forward pass over a batch.

    Args:
        hparams: HParams.
        vocabulary_size: V.
        batch_size: B; like the lengths, it may be a fraction, for the mean of
            many batches.
        source_length: S. Padding counts like tokens, though the loss leaves
            some of it out.
        target_length: T.
    """
    S, T = source_length, target_length
    reach = hparams.attention_window // 2
    encoder_layer = _attention_flops(
        hparams,
        S,
        S,
        num_scores=_num_scores(hparams, S, before=reach, after=reach),
    ) + _feed_forward_flops(hparams, S)
    decoder_layer = (
        _attention_flops(
            hparams,
            T,
            T,
            num_scores=_num_scores(hparams, T, before=reach, after=0),
        )
        + _attention_flops(hparams, T, S, num_scores=T * S)
        + _feed_forward_flops(hparams, T)
    )
    logits = 2 * T * hparams.d_model * vocabulary_size
    encoder = hparams.num_layers * encoder_layer
    decoder = hparams.decoder_layers * decoder_layer
    return batch_size * (encoder + decoder + logits)


def _num_scores(
    hparams: HParams, length: float, before: int, after: int
) -> float:
    """Returns how many products of a query and a key self-attention takes.

    A mask saves none: each query is multiplied by every key. A window does.
    """
    if not hparams.attention_window:
        return length * length
    return windows.blocks(before, after).num_products(length)


def _attention_flops(
    hparams: HParams,
    query_length: float,
    memory_length: float,
    num_scores: float,
) -> float:
    """Returns the operations of one sub-layer of multi-head attention."""
    depths = hparams.num_heads * (hparams.d_k + hparams.d_v)
    # Each head's keys and values from the memory, queries and output from x.
    projections = 2 * hparams.d_model * depths * (query_length + memory_length)
    return projections + 2 * depths * num_scores


def _feed_forward_flops(hparams: HParams, length: float) -> float:
    return 2 * 2 * length * hparams.d_model * hparams.d_ff


def update_flops(
    hparams: HParams,
    vocabulary_size: int,
    batch_size: float,
    source_length: float,
    target_length: float,
) -> float:
    """Returns the operations of one update: forward and backward pass.

    The backward pass has two products of the same size for each of the forward
    pass, so an update takes three times as much. The optimizer's few
    operations per weight are left out.

    The arguments are those of `forward_flops`.
    """
    return _PRODUCTS_PER_UPDATE * forward_flops(
        hparams,
        vocabulary_size,
        batch_size=batch_size,
        source_length=source_length,
        target_length=target_length,
    )


def tokens_flops(
    hparams: HParams,
    vocabulary_size: int | None = None,
    tokens: int | None = None,
    mean_length: float = TYPICAL_LENGTH,
) -> float:
    """Returns the operations of one update of this many tokens on each side.

    >>> from t2t_lite.hparams import PRESETS
    >>> f"{tokens_flops(PRESETS['transformer_base']):.2e}"
    '9.53e+12'

    Args:
        hparams: HParams.
        vocabulary_size: V; that of the hparams when not given.
        tokens: of the source, and as many of the target, none of them padding;
            `tokens_per_batch` of the hparams when not given.
        mean_length: tokens of a sentence.
    """
    tokens = tokens or hparams.tokens_per_batch
    return update_flops(
        hparams,
        vocabulary_size or hparams.vocabulary_size,
        batch_size=tokens / mean_length,
        source_length=mean_length,
        target_length=mean_length,
    )


def num_parameters(
    hparams: HParams,
    vocabulary_size: int | None = None,
    num_target_ids: int | None = None,
) -> int:
    """Returns how many weights a Transformer has.

    >>> from t2t_lite.hparams import PRESETS
    >>> num_parameters(PRESETS["transformer_base"])
    63045632

    Args:
        hparams: HParams.
        vocabulary_size: V; that of the hparams when not given.
        num_target_ids: V of targets, if they have a matrix of their own; that
            of sources when not given.
    """
    D, F = hparams.d_model, hparams.d_ff
    attention = 2 * D * hparams.num_heads * (hparams.d_k + hparams.d_v)
    if hparams.attention_bias:
        attention += hparams.num_heads * hparams.d_k + D
    feed_forward = (D * F + F) + (F * D + D)
    norm = 2 * D
    encoder = hparams.num_layers * (attention + feed_forward + 2 * norm)
    decoder = hparams.decoder_layers * (2 * attention + feed_forward + 3 * norm)
    is_learned = hparams.positions == "learned"
    positions = 2 * hparams.learned_positions * D if is_learned else 0
    top_norms = 2 * norm if hparams.norm == "pre" else 0
    stacks = encoder + decoder + top_norms
    return _embeddings(hparams, vocabulary_size, num_target_ids) + (
        positions + stacks
    )


def _embeddings(
    hparams: HParams, vocabulary_size: int | None, num_target_ids: int | None
) -> int:
    """Returns the weights of the embeddings and of the pre-softmax."""
    sources = vocabulary_size or hparams.vocabulary_size
    targets = num_target_ids or sources
    rows = {
        "all": sources,
        "target": sources + targets,
        "input": sources + targets,
        "none": sources + 2 * targets,
    }[hparams.tied_embeddings]
    logits = sources if hparams.tied_embeddings == "all" else targets
    return rows * hparams.d_model + logits * hparams.logit_bias
