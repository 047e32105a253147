"""A treebank of five trees, and settings that learn it."""

from t2t_lite.hparams import HParams
from t2t_lite.parsing import trees

TREES = [
    "(TOP (S (NP (DT the) (NN cat)) (VP (VBZ sleeps)) (. .)))",
    "(TOP (S (NP (PRP it)) (VP (VBD saw) (NP (DT a) (NN dog))) (. .)))",
    "(TOP (NP (DT the) (NN dog)))",
    "(TOP (UH oh))",
    "(TOP (S (NP (DT a) (NN cat)) (VP (VBD saw) (NP (DT the) (NN dog)))))",
]
WORDS = [" ".join(trees.words(trees.read_one(line))) for line in TREES]
PARSING = HParams(
    task="parsing",
    num_layers=1,
    d_model=32,
    d_ff=64,
    num_heads=2,
    d_k=16,
    d_v=16,
    dropout=0.0,
    tokens_per_batch=96,
    num_buckets=1,
    max_length=48,
    warmup_steps=40,
    steps=120,
    learning_rate_scale=1.0,
    beam_width=4,
    length_penalty=0.3,
    max_extra_length=40,
    average_last=1,
)
