"""Prints the seconds of `generate` of a Hugging Face model of the same sizes.

    python hf_search.py FOLDER OUTPUT

`translating.py` writes FOLDER/task.json, and runs this with the Python of an
environment that has transformers and torch but not this package. The model is a
MarianMTModel with random weights of its own, so its outputs are not compared.
"""

import json
import os
import pathlib
import sys

import measuring
import torch
from transformers import MarianConfig, MarianMTModel

_PAD, _EOS = 0, 1


def make_model(hparams, vocabulary_size):
    """Returns a MarianMTModel with the sizes in a dict of HParams' fields."""
    sizes = {
        f"{side}_{name}": hparams[field]
        for side in ("encoder", "decoder")
        for name, field in (
            ("layers", "num_layers"),
            ("ffn_dim", "d_ff"),
            ("attention_heads", "num_heads"),
        )
    }
    config = MarianConfig(
        vocab_size=vocabulary_size,
        decoder_vocab_size=vocabulary_size,
        d_model=hparams["d_model"],
        activation_function="relu",
        scale_embedding=True,
        max_position_embeddings=128,
        pad_token_id=_PAD,
        eos_token_id=_EOS,
        decoder_start_token_id=_EOS,
        share_encoder_decoder_embeddings=True,
        tie_word_embeddings=True,
        **sizes,
    )
    return MarianMTModel(config).eval()


def main(folder, output):
    torch.set_num_threads(os.cpu_count())
    torch.manual_seed(0)
    task = json.loads((folder / "task.json").read_text())
    model = make_model(task["hparams"], task["vocabulary_size"])
    source_ids = torch.tensor(task["sources"])
    output.write_text("[]")

    def generate():
        with torch.inference_mode():
            return model.generate(
                source_ids,
                attention_mask=torch.ones_like(source_ids),
                num_beams=task["beam_width"],
                do_sample=False,
                min_new_tokens=task["num_tokens"],
                max_new_tokens=task["num_tokens"],
            )

    first, found = measuring.timed(generate)
    expected = len(source_ids), 1 + task["num_tokens"]
    if tuple(found.shape) != expected:
        raise ValueError(f"expected {expected}; received {found.shape}")
    later = measuring.median_seconds(generate, warm_up=0, calls=3)
    print(json.dumps([first, later]))


if __name__ == "__main__":
    main(*map(pathlib.Path, sys.argv[1:]))
