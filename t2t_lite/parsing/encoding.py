"""Trees as ids: those of the control symbols of a vocabulary."""

from collections.abc import Iterable, Sequence

from t2t_lite.errors import InputError
from t2t_lite.parsing import trees
from t2t_lite.text.vocabulary import Vocabulary
from t2t_lite.token_ids import EOS


def has_tree_symbols(vocabulary: Vocabulary) -> bool:
    """Returns whether a vocabulary was learned for parsing."""
    return trees.opening(trees.ROOT) in vocabulary.control_symbols


def missing_symbols(
    vocabulary: Vocabulary, treebank: Iterable[trees.Tree]
) -> list[str]:
    """Returns the symbols of some trees that a vocabulary lacks, sorted."""
    known = vocabulary.control_symbols
    return [symbol for symbol in trees.symbols(treebank) if symbol not in known]


def num_target_ids(vocabulary: Vocabulary) -> int:
    """Returns one more than the largest id of a symbol.

    Raises:
        InputError: the vocabulary was not learned for parsing.
    """
    if not has_tree_symbols(vocabulary):
        raise InputError(
            "the vocabulary has no tree symbols: learn one with task=parsing"
        )
    return max(vocabulary.control_symbols.values()) + 1


def encode_trees(
    vocabulary: Vocabulary, lines: Sequence[str]
) -> list[list[int]]:
    """Returns the ids of each tree's symbols, without its words, and EOS.

    Args:
        vocabulary: Vocabulary; what it lacks gets the id of an unknown piece.
        lines: list of str, each a tree, or blank, which has no symbols.

    Raises:
        InputError: a line is not one tree.
    """
    ids, unknown = vocabulary.control_symbols, vocabulary.unknown_id
    symbols_of_each = (
        trees.linearize(trees.read_one(line)) if line else () for line in lines
    )
    return [
        [*(ids.get(symbol, unknown) for symbol in symbols), EOS]
        for symbols in symbols_of_each
    ]
