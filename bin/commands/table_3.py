"""Prints Table 3 of the paper: its variations of the model, each a preset.

bin/train --hparams=NAME --corpus=wmt14_en_de trains one.
"""

from t2t_lite import paper


def main(_: list[str]) -> int:
    print(paper.table_3_text())
    return 0
