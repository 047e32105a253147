"""A run of bin/train that takes seconds: its flags and its corpus."""

import pathlib

FLAGS = [
    "--override=num_layers=1",
    "--override=d_model=16",
    "--override=d_ff=24",
    "--override=num_heads=2",
    "--override=d_k=8",
    "--override=d_v=8",
    "--override=vocabulary_size=400",
    "--override=tokens_per_batch=256",
    "--override=max_length=64",
    "--override=num_buckets=4",
    "--override=warmup_steps=4",
    "--override=average_last=2",
]


def write_corpus(folder, num_pairs=60):
    """Writes a small corpus of number words; returns the flags that name it.

    The translation of a sentence is its words in reverse.
    """
    words = ["null", "eins", "zwei", "drei", "vier", "acht", "neun", "elf"]
    flags = []
    for split, first in (("train", 100), ("dev", 500), ("test", 700)):
        numbers = [
            str((n * 7919) % 10**6) for n in range(first, first + num_pairs)
        ]
        sources = [" ".join(words[int(d) % 8] for d in n) for n in numbers]
        targets = [" ".join(reversed(line.split())) for line in sources]
        for side, lines in (("source", sources), ("target", targets)):
            path = pathlib.Path(folder, f"{split}.{side}")
            path.write_text("".join(f"{line}\n" for line in lines), "utf-8")
            flags.append(f"--{split}_{side}={path}")
    return flags
