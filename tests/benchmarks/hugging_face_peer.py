"""Compares imported and exported models with Hugging Face's.

    python tests/benchmarks/hugging_face_peer.py --peer_python=PYTHON

PYTHON is that of an environment with transformers, torch, sentencepiece and
sacremoses. It makes tiny random `MarianMTModel`s in several configurations,
OPUS-MT's first, and computes their logits on padded batches. This package
imports and exports each model; PYTHON loads the export, and this package
imports it again. The last model is one of this package, with the paper's
epsilon, which `MarianMTModel` does not have.

--seeds=N makes N models of each configuration, 3 by default.
--golden=DIR instead writes what the tests in tests/formats read:

    python tests/benchmarks/hugging_face_peer.py --peer_python=PYTHON \
        --golden=tests/golden/hugging_face

PYTHON runs this file, too, with "make" or "load".
"""

import argparse
import dataclasses
import io
import json
import pathlib
import shutil
import subprocess
import sys
import tempfile

import numpy as np

_HERE = pathlib.Path(__file__).absolute().parent
sys.path[:0] = [str(_HERE), str(_HERE.parents[1] / "bin")]

_SPECIAL = ("</s>", "<unk>", "<pad>")
_LANGUAGES = [">>deu<<", ">>nld<<"]
_BIASED = 0.3  # The deviation of noise in weights, so that logits differ.
_EXTRA = 5  # How many tokens an output may have beyond its source's.
_LINES = """\
The old bridge was closed after the storm.
She reads a book by the window every evening.
Two children run along the river with a dog.
We bought bread, cheese and three red apples.
A man in a blue coat waits for the last train.
The teacher wrote the answer on the board.
My brother plays the piano in a small band.
It rained all night and the streets were wet.
They painted the kitchen white and the door green.
Nobody knew where the key to the cellar was.
A woman sells flowers at the corner of the square.
The cat sleeps on the warm stones near the wall.
He lost his hat when the wind came up.
Our train leaves at seven in the morning.
The boy threw a stone into the lake.
An engineer explains how the machine works.
""".splitlines()
_STRANGE = [
    "",
    "  two  spaces  here ",
    "caf\u00e9 \u4e2d\u6587 \U0001f600 zebra",
    "\u2581under \u00bd \ufb01ne",
    ">>deu<< The dog waits.",
    ">>nld<< The dog waits.",
    "A tab\tand a dash\u2014here.",
]
_OPUS = {
    "d_model": 16,
    "encoder_layers": 2,
    "decoder_layers": 2,
    "encoder_ffn_dim": 24,
    "decoder_ffn_dim": 24,
    "encoder_attention_heads": 4,
    "decoder_attention_heads": 4,
    "activation_function": "swish",
    "scale_embedding": True,
    "max_position_embeddings": 64,
    "share_encoder_decoder_embeddings": True,
    "tie_word_embeddings": True,
    "start": "<pad>",
    "special": ("</s>", "<unk>"),  # The first ids; <pad> is the last.
    "separate_vocabs": False,
}
_CASES = {
    "opus": {},
    "separate": {
        "separate_vocabs": True,
        "share_encoder_decoder_embeddings": False,
        "d_model": 12,
        "encoder_layers": 3,
        "decoder_layers": 1,
        "encoder_attention_heads": 3,
        "decoder_attention_heads": 3,
        "activation_function": "relu",
        "start": "</s>",
        "special": ("<unk>", "</s>"),
    },
    "untied": {
        "share_encoder_decoder_embeddings": False,
        "tie_word_embeddings": False,
        "activation_function": "gelu",
        "scale_embedding": False,
    },
    "own_output": {
        "tie_word_embeddings": False,
        "activation_function": "silu",
    },
}


# What the peer's Python runs, with transformers and torch.


def make(folder):
    """Writes a model and its outputs for each case in `folder`."""
    import torch
    from transformers import MarianConfig, MarianMTModel, MarianTokenizer

    for case in sorted(folder.glob("*/case.json")):
        settings = json.loads(case.read_text())
        torch.manual_seed(settings.pop("seed"))
        model = MarianMTModel(MarianConfig(**settings)).eval()
        _randomize(model)
        model.save_pretrained(case.parent)
        tokenizer = MarianTokenizer.from_pretrained(case.parent)
        _write_outputs(case.parent, model, tokenizer)


def _randomize(model):
    """Changes all weights except those that must keep their values."""
    import torch

    with torch.no_grad():
        for name, weight in model.named_parameters():
            if "embed_positions" not in name:
                weight.add_(torch.randn_like(weight) * _BIASED)
        model.final_logits_bias.copy_(
            torch.randn_like(model.final_logits_bias) * _BIASED
        )
        stacks = model.model.encoder, model.model.decoder
        if model.config.share_encoder_decoder_embeddings:
            for stack in stacks:
                stack.embed_tokens.weight.copy_(model.model.shared.weight)
        if model.config.decoder_start_token_id == model.config.pad_token_id:
            for stack in stacks:
                stack.embed_tokens.weight[model.config.pad_token_id] = 0
            if model.config.share_encoder_decoder_embeddings:
                model.model.shared.weight[model.config.pad_token_id] = 0


def load(folder):
    """Loads each model in `folder`; writes its outputs and all warnings."""
    import logging
    import warnings

    from transformers import MarianMTModel, MarianTokenizer
    from transformers.utils import logging as their_logging

    for settings in sorted(folder.glob("*/config.json")):
        said = io.StringIO()
        handler = logging.StreamHandler(said)
        their_logging.set_verbosity_warning()
        their_logging.get_logger().addHandler(handler)
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            model, keys = MarianMTModel.from_pretrained(
                settings.parent, output_loading_info=True, dtype="float32"
            )
            tokenizer = MarianTokenizer.from_pretrained(settings.parent)
            _write_outputs(settings.parent, model.eval(), tokenizer)
        their_logging.get_logger().removeHandler(handler)
        report = {name: sorted(map(str, found)) for name, found in keys.items()}
        report["warnings"] = [str(each.message) for each in caught]
        report["log"] = said.getvalue()
        (settings.parent / "report.json").write_text(json.dumps(report))


def _write_outputs(folder, model, tokenizer):
    """Writes logits and translations of pairs.json, and ids of lines.json."""
    import torch

    pairs = json.loads((folder / "pairs.json").read_text())
    source_ids, target_ids = map(
        torch.tensor, (pairs["source"], pairs["target"])
    )
    mask = source_ids != model.config.pad_token_id
    with torch.inference_mode():
        logits = model(
            input_ids=source_ids,
            attention_mask=mask.long(),
            decoder_input_ids=target_ids,
        ).logits
        generated = [
            model.generate(
                row[None, keep],
                attention_mask=torch.ones(1, int(keep.sum())).long(),
                num_beams=4,
                length_penalty=0.0,
                max_length=1 + int(keep.sum()) + _EXTRA,
            )[0].tolist()
            for row, keep in zip(source_ids, mask, strict=True)
        ]
    np.save(folder / "logits.npy", logits.float().numpy())
    lines = json.loads((folder / "lines.json").read_text())
    text = {
        "source": tokenizer(lines).input_ids,
        "target": tokenizer(text_target=lines).input_ids,
        "generated": generated,
        "decoded": tokenizer.batch_decode(generated, skip_special_tokens=True),
    }
    (folder / "text.json").write_text(json.dumps(text))


# What runs here, with this package.


def _sentence_piece(lines, num_pieces, normalizer):
    """Returns a SentencePiece model like those of OPUS-MT."""
    import sentencepiece

    model = io.BytesIO()
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter(lines),
        model_writer=model,
        vocab_size=num_pieces,
        model_type="unigram",
        normalization_rule_name=normalizer,
        minloglevel=2,
    )
    return model.getvalue()


def _pieces_of(model):
    import sentencepiece

    processor = sentencepiece.SentencePieceProcessor(model_proto=model)
    pieces = map(processor.id_to_piece, range(processor.get_piece_size()))
    return [piece for piece in pieces if piece not in ("<unk>", "<s>", "</s>")]


def _ids(pieces, special, random):
    """Returns the content of a vocab.json: special pieces first, <pad> last."""
    pieces = sorted(set(pieces))
    random.shuffle(pieces)
    return {p: i for i, p in enumerate([*special, *pieces, "<pad>"])}


def write_case(folder, name, seed, normalizer="nmt_nfkc"):
    """Writes all files of a case except its weights."""
    folder.mkdir(parents=True)
    settings = _OPUS | _CASES[name] | {"seed": seed}
    random = np.random.default_rng(seed)
    models = {
        "source": _sentence_piece(_LINES, 52, normalizer),
        "target": _sentence_piece(_LINES, 55, normalizer),
    }
    for side, model in models.items():
        (folder / f"{side}.spm").write_bytes(model)
    # Some pieces have no id, like those that training never met.
    pieces = {s: _pieces_of(m)[:-3] + _LANGUAGES for s, m in models.items()}
    special = settings.pop("special")
    if settings["separate_vocabs"]:
        ids = {s: _ids(p, special, random) for s, p in pieces.items()}
        for each in ids.values():
            # Any ids will do, but <pad> and </s> need the same on both sides.
            _swap(each, "<pad>", 2)
            _swap(each, "</s>", 7)
        _swap(ids["source"], "<unk>", 11)
        _write_json(folder / "target_vocab.json", ids["target"])
    else:
        shared = pieces["source"] + pieces["target"]
        ids = dict.fromkeys(pieces, _ids(shared, special, random))
    _write_json(folder / "vocab.json", ids["source"])
    separate = settings.pop("separate_vocabs")
    _write_json(folder / "tokenizer_config.json", {"separate_vocabs": separate})
    _write_json(folder / "lines.json", _LINES + _STRANGE)
    start = settings.pop("start")
    settings |= {
        "vocab_size": len(ids["source"]),
        "decoder_vocab_size": len(ids["target"]),
        "pad_token_id": ids["target"]["<pad>"],
        "eos_token_id": ids["target"]["</s>"],
        "forced_eos_token_id": None,
        "decoder_start_token_id": ids["target"][start],
    }
    _write_json(folder / "case.json", settings)
    pairs = _random_pairs(settings, random)
    _write_json(folder / "pairs.json", pairs)


def _swap(ids, piece, new_id):
    other = next(p for p, i in ids.items() if i == new_id)
    ids[other], ids[piece] = ids[piece], new_id


def _write_json(path, values):
    path.write_text(json.dumps(values, indent=1) + "\n")


def _random_pairs(settings, random):
    """Returns ids of padded sources, and of decoder inputs."""
    pad, start = settings["pad_token_id"], settings["decoder_start_token_id"]
    eos = settings["eos_token_id"]

    def ids(size, length):
        allowed = [i for i in range(size) if i not in (pad, eos)]
        return random.choice(allowed, length).tolist()

    lengths = (7, 3, 5)
    return {
        "source": [
            ids(settings["vocab_size"], n) + [eos] + [pad] * (7 - n)
            for n in lengths
        ],
        "target": [
            [start, *ids(settings["decoder_vocab_size"], 5)] for _ in lengths
        ],
    }


class Loaded:
    """An imported model, and its own id for each of Hugging Face's."""

    def __init__(self, folder):
        from t2t_lite.formats import hugging_face_import

        self.folder = folder
        self.model = hugging_face_import.read(folder)
        vocabulary = self.model.vocabulary
        ids = json.loads((folder / "vocab.json").read_text())
        path = folder / "target_vocab.json"
        of_target = json.loads(path.read_text()) if path.exists() else ids
        self.source = _ours(ids, vocabulary)
        self.target = _ours(of_target, vocabulary.target)

    def transformer(self):
        """Returns the Transformer with the imported weights."""
        from t2t_lite.model.transformer import Transformer
        from t2t_lite.storage.model_directory import assign

        vocabulary = self.model.vocabulary
        model = Transformer(
            self.model.hparams,
            vocabulary.size,
            num_target_ids=vocabulary.target.size,
        )
        model.build()
        assign(model.trainable_variables, self.model.weights, "the model")
        return model

    def logits(self):
        """Returns logits on pairs.json, in the order of Hugging Face's ids."""
        pairs = json.loads((self.folder / "pairs.json").read_text())
        inputs = self.source[pairs["source"]], self.target[pairs["target"]]
        logits_BTV = np.asarray(self.transformer()(inputs))
        return logits_BTV[..., self.target]

    def outputs(self):
        """Returns ids of translations: (this package's, Hugging Face's)."""
        from t2t_lite.decoding.search import search
        from t2t_lite.decoding.search_options import SearchOptions

        pairs = json.loads((self.folder / "pairs.json").read_text())
        options = SearchOptions(4, 0.0, _EXTRA)
        source_ids = self.source[pairs["source"]]
        found = search(self.transformer(), source_ids, options)
        text = json.loads((self.folder / "text.json").read_text())
        there = [self.target[ids[1:]] for ids in text["generated"]]
        return [_ended(ids) for ids in np.asarray(found.ids_BWT[:, 0])], [
            _ended(ids) for ids in there
        ]

    def scores(self, outputs):
        """Returns the log probability of each output by this package."""
        import keras

        pairs = json.loads((self.folder / "pairs.json").read_text())
        model, scores = self.transformer(), []
        for ids, source in zip(outputs, pairs["source"], strict=True):
            # Decoding starts from EOS, or from zeros in place of any id.
            inputs = np.array([[1, *ids[:-1]]])
            source_ids = self.source[source][None]
            logits_TV = np.array(model((source_ids, inputs))[0])
            logits_TV[:, 0] = -np.inf  # <pad>, which is never an output.
            log_p_TV = keras.ops.log_softmax(logits_TV)
            scores.append(
                float(
                    np.take_along_axis(
                        np.asarray(log_p_TV), np.array(ids)[:, None], 1
                    ).sum()
                )
            )
        return scores

    def num_equal_ids(self, side):
        """Returns (number of lines with equal ids, number of lines, others)."""
        vocabulary = self.model.vocabulary
        if side == "target":
            vocabulary = vocabulary.target
        lines = json.loads((self.folder / "lines.json").read_text())
        text = json.loads((self.folder / "text.json").read_text())
        order = self.source if side == "source" else self.target
        found = vocabulary.encode(lines)
        expected = [order[ids].tolist() for ids in text[side]]
        different = [
            (line, f, e)
            for line, f, e in zip(lines, found, expected, strict=True)
            if f != e
        ]
        return len(lines) - len(different), len(lines), different


def _ended(ids):
    """Returns ids up to EOS, without padding."""
    ids = [i for i in ids.tolist() if i]
    return ids[: ids.index(1) + 1] if 1 in ids else ids


def _ours(ids, vocabulary):
    """Returns this package's id for each of Hugging Face's, in order."""
    tokens = vocabulary.tokens(range(vocabulary.size))
    ours = {token.removeprefix("\u2581>>"): i for i, token in enumerate(tokens)}
    return np.array(
        [
            ours[piece.removeprefix(">>")]
            if piece.startswith(">>")
            else ours[piece]
            for piece in sorted(ids, key=ids.get)
        ]
    )


def compare(folder, peer_python, names, seeds):
    """Imports, exports and reimports each model, and prints a line for it."""
    for name in names:
        for seed in range(seeds):
            write_case(folder / "in" / f"{name}-{seed}", name, seed)
    _run(peer_python, "make", folder / "in")
    read = [Loaded(path) for path in sorted((folder / "in").iterdir())]
    paper = write_paper_model(folder / "out" / "paper")
    for loaded in read:
        _write_out(loaded, folder / "out" / loaded.folder.name)
    _run(peer_python, "load", folder / "out")
    print(
        "model         logits in  logits out  same again  outputs in, out  ids"
    )
    for loaded in read:
        again = Loaded(folder / "out" / loaded.folder.name)
        print(_report(loaded, again))
    print(_report_paper(*paper))


def write_paper_model(folder):
    """Exports a random model with the paper's settings, but of tiny sizes.

    Returns:
        (the folder, PortableModel, its logits on the pairs of the folder).
    """
    from t2t_lite.formats import hugging_face_export
    from t2t_lite.formats.portable import PortableModel
    from t2t_lite.hparams import HParams
    from t2t_lite.model.transformer import Transformer
    from t2t_lite.text import learning

    vocabulary = learning.learn(_LINES, "bpe", 350)
    sizes = {"d_model": 16, "d_ff": 24, "num_heads": 4, "d_k": 4, "d_v": 4}
    hparams = HParams(num_layers=2, **sizes)
    model = Transformer(hparams, vocabulary.size)
    model.build()
    random = np.random.default_rng(0)
    for weight in model.trainable_variables:
        weight.assign_add(random.normal(0, _BIASED, weight.shape))
    weights = {v.path: np.asarray(v.value) for v in model.trainable_variables}
    imported = PortableModel(hparams, weights, vocabulary)
    hugging_face_export.write(imported, folder)
    ids = {"pad_token_id": 0, "eos_token_id": 1, "decoder_start_token_id": 1}
    sizes = dict.fromkeys(("vocab_size", "decoder_vocab_size"), vocabulary.size)
    pairs = _random_pairs(ids | sizes, random)
    _write_json(folder / "pairs.json", pairs)
    _write_json(folder / "lines.json", _LINES + _STRANGE)
    inputs = np.array(pairs["source"]), np.array(pairs["target"])
    return folder, imported, np.asarray(model(inputs))


def _report_paper(folder, model, logits_BTV):
    """Returns a line: what the other epsilon costs, and how many ids agree."""
    text = json.loads((folder / "text.json").read_text())
    lines = json.loads((folder / "lines.json").read_text())
    found = model.vocabulary.encode(lines)
    for line, ids, there in zip(lines, found, text["source"], strict=True):
        if ids != there:
            print(f"  other ids: {line!r} {ids} {there}")
    equal = sum(f == t for f, t in zip(found, text["source"], strict=True))
    decoded = model.vocabulary.decode([ids[1:] for ids in text["generated"]])
    pairs = zip(decoded, text["decoded"], strict=True)
    num_texts = sum(line.strip() == there for line, there in pairs)
    difference = np.abs(np.load(folder / "logits.npy") - logits_BTV).max()
    return (
        f"paper, whose epsilon is 1e-6: logits out {difference:.1e} of "
        f"{np.abs(logits_BTV).max():.1f}, ids {equal}/{len(lines)}, "
        f"texts of outputs {num_texts}/{len(decoded)}"
    )


def _write_out(loaded, folder):
    from t2t_lite.formats import hugging_face_export

    hugging_face_export.write(loaded.model, folder)
    pairs = json.loads((loaded.folder / "pairs.json").read_text())
    pairs = {
        side: getattr(loaded, side)[ids].tolist() for side, ids in pairs.items()
    }
    _write_json(folder / "pairs.json", pairs)
    shutil.copy(loaded.folder / "lines.json", folder)


def _report(loaded, again):
    """Returns a line of the table."""
    expected = np.load(loaded.folder / "logits.npy")
    outside = np.load(again.folder / "logits.npy")[..., loaded.target]
    same = dataclasses.asdict(loaded.model.hparams) == dataclasses.asdict(
        again.model.hparams
    ) and all(
        np.array_equal(weight, again.model.weights[name])
        for name, weight in loaded.model.weights.items()
    )
    ids = [
        each.num_equal_ids(side)
        for each in (loaded, again)
        for side in ("source", "target")
    ]
    for _, _, different in ids:
        for line in different:
            print("  other ids:", *line)
    said = json.loads((again.folder / "report.json").read_text())
    said = {key: value for key, value in said.items() if value}
    ids = " ".join(f"{equal}/{count}" for equal, count, _ in ids)
    outputs = " ".join(_compare_outputs(each) for each in (loaded, again))
    return (
        f"{loaded.folder.name:12}"
        f"{np.abs(loaded.logits() - expected).max():12.1e}"
        f"{np.abs(outside - expected).max():12.1e}"
        f"{'yes' if same else 'no':>12}  {outputs:>15}  {ids}"
        f"  {said or 'no warnings'}"
    )


def _compare_outputs(loaded):
    """Prints the translations that differ; returns how many are equal."""
    found, there = loaded.outputs()
    ours, theirs = loaded.scores(found), loaded.scores(there)
    for n, (output, other) in enumerate(zip(found, there, strict=True)):
        if output != other:
            print(f"  {ours[n]:.4f} here  {output}")
            print(f"  {theirs[n]:.4f} there {other}")
    equal = sum(f == t for f, t in zip(found, there, strict=True))
    return f"{equal}/{len(found)}"


def _run(peer_python, what, folder):
    subprocess.run([peer_python, __file__, what, folder], check=True)


def write_golden(folder, peer_python):
    """Writes two tiny models and their outputs."""
    for name in ("opus", "separate"):
        # The tables of nmt_nfkc are larger than all the other files.
        write_case(folder / name, name, seed=0, normalizer="identity")
    _run(peer_python, "make", folder)
    for case in folder.glob("*/case.json"):
        case.unlink()  # config.json has it all.


def main():
    if sys.argv[1:2] in (["make"], ["load"]):
        {"make": make, "load": load}[sys.argv[1]](pathlib.Path(sys.argv[2]))
        return
    import checkout  # noqa: F401, this checkout's packages
    import measuring

    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    path = measuring.existing_path
    parser.add_argument("--peer_python", type=path, required=True)
    parser.add_argument("--seeds", type=measuring.positive_int, default=3)
    parser.add_argument("--golden", type=pathlib.Path)
    args = parser.parse_args()
    if args.golden:
        write_golden(args.golden, args.peer_python)
        return
    with tempfile.TemporaryDirectory() as temporary:
        folder = pathlib.Path(temporary)
        compare(folder, args.peer_python, list(_CASES), seeds=args.seeds)


if __name__ == "__main__":
    main()
