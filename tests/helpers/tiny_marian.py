"""Tiny random Marian models: their options, arrays and files.

It imports only NumPy, yaml and sentencepiece, so that an environment with
Marian but without this package can make the same models.
"""

import json

import numpy as np
import yaml
from sentencepiece import sentencepiece_model_pb2

SPACE = "\u2581"
_WORDS = ("der", "die", "und", "ein", "haus", "gr", "en", "er", "sch")
# Pairs of text; all their characters but one are pieces of `spm`.
SOURCES = ("das haus", "ein wort und noch eins", "z", "die gr\u00f6sse")
TARGETS = ("ein haus", "eins", "das grz", "der und die er sch")


def spm(words=_WORDS, unknown=1, eos=0, normal_letters="abcdefghijklmnorstuwz"):
    """Returns the bytes of a small SentencePiece model.

    Args:
        words: words that are pieces, both with and without a space in front.
        unknown: id of <unk>.
        eos: id of </s>; None for a model without one.
        normal_letters: characters that are pieces.
    """
    proto = sentencepiece_model_pb2.ModelProto()
    kinds = proto.SentencePiece
    texts = [SPACE, *normal_letters]
    texts += [SPACE + word for word in words] + list(words)
    pieces = [
        kinds(piece=text, score=-5.0 + 0.7 * len(text) - 0.01 * n)
        for n, text in enumerate(texts)
    ]
    special = {unknown: kinds(piece="<unk>", type=kinds.UNKNOWN)}
    if eos is not None:
        special[eos] = kinds(piece="</s>", type=kinds.CONTROL)
    for i in sorted(special):
        pieces.insert(i, special[i])
    proto.pieces.extend(pieces)
    spec = proto.trainer_spec
    spec.model_type = spec.UNIGRAM
    spec.unk_id, spec.eos_id = unknown, -1 if eos is None else eos
    spec.bos_id = spec.pad_id = -1
    spec.vocab_size = len(pieces)
    proto.normalizer_spec.name = "identity"
    proto.normalizer_spec.add_dummy_prefix = True
    proto.normalizer_spec.remove_extra_whitespaces = True
    proto.normalizer_spec.escape_whitespaces = True
    return proto.SerializeToString(deterministic=True)


def pieces_of(model):
    """Returns the pieces of a SentencePiece model, by id."""
    proto = sentencepiece_model_pb2.ModelProto.FromString(model)
    return [piece.piece for piece in proto.pieces]


def options(num_source, num_target, **changes):
    """Returns the special:model.yml options of a tiny post-norm model.

    Args:
        num_source: number of ids of the source vocabulary.
        num_target: number of ids of the target vocabulary.
        **changes: other options, their dashes written as underscores.
    """
    return {
        "type": "transformer",
        "version": "v1.12.42",
        "dim-vocabs": [num_source, num_target],
        "dim-emb": 16,
        "enc-depth": 2,
        "dec-depth": 1,
        "transformer-heads": 2,
        "transformer-dim-ffn": 24,
        "transformer-decoder-dim-ffn": 0,
        "transformer-ffn-depth": 2,
        "transformer-ffn-activation": "swish",
        "transformer-preprocess": "",
        "transformer-postprocess": "dan",
        "transformer-postprocess-emb": "d",
        "transformer-postprocess-top": "",
        "transformer-decoder-autoreg": "self-attention",
        "transformer-tied-layers": [],
        "transformer-no-projection": False,
        "tied-embeddings": False,
        "tied-embeddings-src": False,
        "tied-embeddings-all": False,
        "output-omit-bias": False,
        "skip": False,
        "layer-normalization": False,
        "right-left": False,
        "input-types": [],
    } | {name.replace("_", "-"): value for name, value in changes.items()}


def arrays(options, seed=1):
    """Returns random arrays, by name, for a model with these options."""
    random = np.random.RandomState(seed)
    shapes = dict(_shapes(options))
    made = {}
    for name in sorted(shapes):
        shape = shapes[name]
        values = random.standard_normal(shape)
        if "_ln_scale" in name:
            values = 1 + 0.3 * values
        elif shape[0] == 1:
            values = 0.4 * values
        elif "Wemb" in name or "logit" in name:
            values = 0.3 * values
        else:
            values = 1.5 * values / np.sqrt(shape[0])
        made[name] = values.astype(np.float32)
    return made


def _shapes(options):
    """Yields (name, shape) of each array."""
    D, F = options["dim-emb"], options["transformer-dim-ffn"]
    num_source, num_target = options["dim-vocabs"]
    suffix = "_pre" if "n" in options["transformer-preprocess"] else ""
    is_all = options["tied-embeddings-all"]
    shares_source = is_all or options["tied-embeddings-src"]
    if shares_source:
        yield "Wemb", (num_target, D)
    else:
        yield "encoder_Wemb", (num_source, D)
        yield "decoder_Wemb", (num_target, D)
    if not is_all and not options["tied-embeddings"]:
        yield "decoder_ff_logit_out_Wt", (num_target, D)
    if not options["output-omit-bias"]:
        yield "decoder_ff_logit_out_b", (1, num_target)
    numbers = options["transformer-tied-layers"]
    numbers = numbers or range(1, options["dec-depth"] + 1)
    layers = [f"encoder_l{n + 1}" for n in range(options["enc-depth"])]
    layers += [f"decoder_l{n}" for n in sorted(set(numbers))]
    for layer in layers:
        kinds = ("self", "context") if layer.startswith("dec") else ("self",)
        for kind in kinds:
            names = "qkv" if options["transformer-no-projection"] else "qkvo"
            for letter in names:
                yield f"{layer}_{kind}_W{letter}", (D, D)
                yield f"{layer}_{kind}_b{letter}", (1, D)
            yield f"{layer}_{kind}_Wo_ln_scale{suffix}", (1, D)
            yield f"{layer}_{kind}_Wo_ln_bias{suffix}", (1, D)
        yield f"{layer}_ffn_W1", (D, F)
        yield f"{layer}_ffn_b1", (1, F)
        yield f"{layer}_ffn_W2", (F, D)
        yield f"{layer}_ffn_b2", (1, D)
        yield f"{layer}_ffn_ffn_ln_scale{suffix}", (1, D)
        yield f"{layer}_ffn_ffn_ln_bias{suffix}", (1, D)
    if options["transformer-postprocess-top"]:
        for stack in ("encoder", "decoder"):
            yield f"{stack}_top_ln_scale", (1, D)
            yield f"{stack}_top_ln_bias", (1, D)


def write_npz(path, options, arrays):
    """Writes a model's .npz file as Marian does."""
    text = yaml.safe_dump(options).encode() + b"\0"
    special = {"special:model.yml": np.frombuffer(text, np.int8)}
    np.savez(path, **arrays, **special)


def write(folder, options, arrays, source, target=None, **config):
    """Writes the folder of a model with SentencePiece models as vocabularies.

    Args:
        folder: pathlib.Path; made if missing.
        options: of the model.
        arrays: of the model.
        source: bytes, a SentencePiece model.
        target: bytes, another one; `source` if not given.
        **config: more options of decoder.yml, dashes written as underscores.
    """
    folder.mkdir(parents=True, exist_ok=True)
    write_npz(folder / "model.npz", options, arrays)
    (folder / "source.spm").write_bytes(source)
    names = ["source.spm", "source.spm"]
    if target is not None:
        (folder / "target.spm").write_bytes(target)
        names[1] = "target.spm"
    write_config(folder, vocabs=names, **config)


def write_config(folder, **config):
    """Writes decoder.yml."""
    values = {"relative-paths": True, "models": ["model.npz"]}
    values |= {name.replace("_", "-"): value for name, value in config.items()}
    (folder / "decoder.yml").write_text(yaml.safe_dump(values))


def write_map(path, pieces):
    """Writes pieces, in order of their ids, as a .yml, .json or .txt file."""
    ids = {piece: i for i, piece in enumerate(pieces)}
    quoted = [f"{json.dumps(piece)}: {i}\n" for piece, i in ids.items()]
    texts = {
        ".json": json.dumps(ids),
        ".yml": "".join(quoted),
        ".txt": "".join(f"{piece}\n" for piece in pieces),
    }
    path.write_text(texts[path.suffix])


SMALL = spm()
OTHER = spm(("wort", "noch", "ei", "ns", "das", "re", "ing"))

PRE_NORM = {
    "transformer_preprocess": "n",
    "transformer_postprocess": "da",
    "transformer_postprocess_top": "n",
}
# The models of the tests and of the comparison with Marian itself: (options,
# whether the target has its own vocabulary).
MODELS = {
    "tied": ({"tied_embeddings_all": True}, False),
    "relu": (
        {
            "tied_embeddings_all": True,
            "transformer_ffn_activation": "relu",
            "transformer_heads": 1,
            "dec_depth": 2,
        },
        False,
    ),
    "gelu": ({"transformer_ffn_activation": "gelu"}, True),
    "tied_output": (
        {
            "tied_embeddings": True,
            # Has no effect in Marian.
            "transformer_train_position_embeddings": True,
        },
        True,
    ),
    "tied_input": (
        {"tied_embeddings_src": True, "output_omit_bias": True},
        False,
    ),
    "pre_norm": (PRE_NORM | {"tied_embeddings_all": True}, False),
    "pre_norm_relu": (
        PRE_NORM | {"transformer_ffn_activation": "relu", "dec_depth": 2},
        True,
    ),
    "no_projection": ({"transformer_no_projection": True}, True),
    "tied_layers": (
        {"dec_depth": 3, "transformer_tied_layers": [1, 2, 1]},
        True,
    ),
}


def make(name, seed=1):
    """Returns (options, arrays, source model, target model) of one of MODELS.

    The target model is None if there is only one.
    """
    changes, has_two = MODELS[name]
    target = OTHER if has_two else SMALL
    sizes = len(pieces_of(SMALL)), len(pieces_of(target))
    chosen = options(*sizes, **changes)
    return chosen, arrays(chosen, seed), SMALL, target if has_two else None
