"""Steps of a tf.data pipeline, for your own Dataset and `model.fit`.

    batches = (
        text_pairs.apply(encoded(vocabulary))
        .cache()
        .repeat()
        .shuffle(10_000)
        .apply(batched_by_tokens(tokens_per_batch=4096, max_length=128))
        .apply(teacher_forced)
    )
    model.fit(batches, steps_per_epoch=1000, shuffle=False)

Each step is a function from a Dataset to a Dataset. Repeated before they are
batched, as here, pairs fill every batch. (bin/train plans its batches ahead
instead, from a corpus on disk, so that it can resume at any of them.)
"""

from collections.abc import Callable

import tensorflow as tf

from t2t_lite.errors import require, require_int
from t2t_lite.model.transformer import shift_right
from t2t_lite.text.batching import length_ladder
from t2t_lite.text.vocabulary import Vocabulary, require_vocabulary

Step = Callable[[tf.data.Dataset], tf.data.Dataset]

# What the steps take, by the rank of a side.
_KINDS = {
    0: "strings, not batched yet",
    1: "vectors of ids, such as `encoded` gives",
    2: "batches of ids, such as `batched_by_tokens` gives",
}
_LINES_AT_ONCE = 256  # The op is far slower one line at a time.


def encoded(vocabulary: Vocabulary) -> Step:
    """Returns the step from text pairs to pairs of token ids.

    Args:
        vocabulary: Vocabulary.

    Raises:
        TypeError: it is not one.

    Returns:
        a function from a Dataset of (string [], string []) to one of
        (int32 [S], int32 [T]), EOS at each end.
    """

    require_vocabulary(vocabulary)

    def encode(source, target):
        return (
            vocabulary.encode_tensor(source),
            vocabulary.target.encode_tensor(target),
        )

    def step(dataset):
        _require_dataset(dataset, rank=0, is_text=True)
        return (
            dataset.batch(_LINES_AT_ONCE)
            .map(encode)
            .unbatch()
            .map(
                lambda source, target: (
                    tf.ensure_shape(source, [None]),
                    tf.ensure_shape(target, [None]),
                )
            )
        )

    return step


def batched_by_tokens(tokens_per_batch: int, max_length: int) -> Step:
    """Returns the step from pairs of ids to padded batches of similar length.

    Both sides of a batch are padded to one length of a short ladder, and there
    are as many pairs as fit `tokens_per_batch` tokens on each side, padding
    included; only the last batch of each length may have fewer.

    Args:
        tokens_per_batch: int, at least `max_length`.
        max_length: int, the most tokens of a source or target. A longer pair
            ends the iteration with an InvalidArgumentError: filter such pairs
            out first.

    Returns:
        a function from a Dataset of (int32 [S], int32 [T]) to one of
        (int32 [B, L], int32 [B, L]).

    Raises:
        InputError: a pair of the largest length would not fit.

    Source: section 5.1, "batched together by approximate sequence length".
    """
    require_int(1, tokens_per_batch=tokens_per_batch, max_length=max_length)
    require(
        "tokens_per_batch must be at least max_length",
        tokens_per_batch >= max_length,
        tokens_per_batch=tokens_per_batch,
        max_length=max_length,
    )
    lengths = length_ladder(max_length)
    sizes = [tokens_per_batch // length for length in lengths]

    def longer_side(source_ids, target_ids):
        length = tf.maximum(tf.size(source_ids), tf.size(target_ids))
        tf.debugging.assert_less_equal(
            length,
            max_length,
            f"a pair has more than max_length={max_length} tokens on a side: "
            "filter such pairs out before they are batched",
        )
        return length

    def step(dataset):
        _require_dataset(dataset, rank=1)
        return dataset.bucket_by_sequence_length(
            longer_side,
            # A boundary is the first length of the next bucket, so padding
            # stops one short of it; the last bucket stays empty.
            bucket_boundaries=[length + 1 for length in lengths],
            bucket_batch_sizes=[*sizes, 1],
            padded_shapes=([None], [None]),
            pad_to_bucket_boundary=True,
        )

    return step


def _require_dataset(
    dataset: tf.data.Dataset, rank: int, is_text: bool = False
) -> None:
    """Raises TypeError if elements are not pairs of tensors of a kind."""
    if not isinstance(dataset, tf.data.Dataset):
        raise TypeError(
            f"dataset must be a tf.data.Dataset; received {dataset!r}"
        )
    elements = dataset.element_spec
    is_pair = isinstance(elements, tuple) and len(elements) == 2
    if not is_pair or not all(
        isinstance(each, tf.TensorSpec)
        and each.shape.rank in (None, rank)
        and (each.dtype == tf.string if is_text else each.dtype.is_integer)
        for each in elements
    ):
        raise TypeError(
            f"dataset must hold (source, target) pairs of {_KINDS[rank]}; "
            f"received {elements!r}"
        )


def teacher_forced(dataset: tf.data.Dataset) -> tf.data.Dataset:
    """Returns a Dataset of what `model.fit` takes.

    Args:
        dataset: of (source_ids [B, S], target_ids [B, T]).

    Returns:
        Dataset of ((source_ids, target_ids shifted right), target_ids).
    """
    _require_dataset(dataset, rank=2)
    return dataset.map(
        lambda source_ids, target_ids: (
            (source_ids, shift_right(target_ids)),
            target_ids,
        )
    )
