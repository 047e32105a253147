"""Random constituency trees: long unary chains, flat ones, several roots."""

from t2t_lite.parsing.trees import ROOT, Tree

LABELS = ("S", "NP", "VP", "ADVP", "PRT", "X")
TAGS = ("NN", "DT", "VBZ", "-LRB-", ",", ".", ":", "``", "''")


def random_leaves(rng, num_words):
    """Returns `num_words` pre-terminals, with few different words."""
    return [
        Tree(rng.choice(TAGS), (rng.choice("abcd"),)) for _ in range(num_words)
    ]


def random_tree(rng, leaves):
    """Returns a normalized Tree with these pre-terminals."""
    return Tree(ROOT, _children(rng, leaves))


def _children(rng, leaves):
    """Returns constituents and tags that cover the leaves in their order."""
    if rng.random() < 0.2:
        return tuple(leaves)
    children, start = [], 0
    while start < len(leaves):
        end = rng.randint(start + 1, len(leaves))
        if end == start + 1 and rng.random() < 0.5:
            children.append(leaves[start])
        else:
            inner = _children(rng, leaves[start:end])
            children.append(Tree(rng.choice(LABELS), inner))
        start = end
    return tuple(children)
