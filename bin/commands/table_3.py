"""Prints Table 3 of the paper: its variations of the model, each a preset.

bin/train --hparams=NAME --corpus=wmt14_en_de trains one.
"""

from t2t_lite import paper as table_3


def main(_):
    print(table_3.as_text())
    return 0
