"""Token pairs from lists of ids."""

from t2t_lite.text.token_files import TokenPairs
from t2t_lite.text.vocabulary import FlatIds


def pairs_in_memory(source_sequences, target_sequences):
    """Returns the TokenPairs of two equally long lists of lists of ids."""
    return TokenPairs.from_flat(
        FlatIds.from_lists(source_sequences),
        FlatIds.from_lists(target_sequences),
    )


def arrays_of(pairs):
    """Returns the ids and the offsets of each side of TokenPairs."""
    return (
        pairs.source_ids,
        pairs.source_offsets,
        pairs.target_ids,
        pairs.target_offsets,
    )
