"""Sizes of a Bucket as tuples, to be compared."""


def sides_of(bucket):
    """Returns (S, T), the lengths of the sequences of a batch."""
    return bucket.source_length, bucket.target_length


def shape_of(bucket):
    """Returns (S, T, B)."""
    return (*sides_of(bucket), bucket.batch_size)
