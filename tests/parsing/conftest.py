"""A vocabulary with the symbols of tiny_trees."""

import pytest
from tiny_trees import TREES, WORDS

from t2t_lite.parsing import trees
from t2t_lite.text import learning


@pytest.fixture(scope="package")
def vocabulary():
    symbols = trees.symbols(map(trees.read_one, TREES))
    return learning.learn(WORDS * 9, "bpe", 2000, symbols=symbols)
