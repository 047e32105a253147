"""A run's directory is filled once, and resumed only with the same text."""

import dataclasses
import functools
import io
import itertools
import logging
import pathlib

import numpy as np
import pytest
import sentencepiece
from bilingual_text import CORPUS

from t2t_lite import files
from t2t_lite.errors import InputError
from t2t_lite.hparams import MAY_CHANGE, HParams
from t2t_lite.storage import checkpoints
from t2t_lite.storage.model_directory import ModelDirectory
from t2t_lite.text import learning, token_files
from t2t_lite.text.vocabulary import Vocabulary
from t2t_lite.training.options import RunOptions
from t2t_lite.training.preparation import prepare
from t2t_lite.training.training_text import TrainingText

PAIRS = [(line, line[::-1]) for line in CORPUS]
HPARAMS = HParams(vocabulary_size=400, max_length=100, tokens_per_batch=400)
OPTIONS = RunOptions(micro_batch_tokens=64)


class Text:
    """Training text that counts how often it is read."""

    def __init__(self, pairs=PAIRS, links=None):
        self.times_read, self.pairs = 0, pairs
        flags = {"corpus": "of this test"}
        self.text = TrainingText(
            flags,
            {"train": self._read},
            alignments=None if links is None else lambda: iter(links),
        )

    def _read(self):
        self.times_read += 1
        return iter(self.pairs)


@pytest.fixture
def directory(tmp_path):
    return ModelDirectory(tmp_path / "run")


def prepare_with(directory, pairs=PAIRS, hparams=HPARAMS, **options):
    changed = dataclasses.replace(OPTIONS, **options)
    return prepare(directory, hparams, Text(pairs).text, options=changed)


def train(directory):
    """Writes a checkpoint, so that the run in the directory has begun."""
    checkpoints.write(directory.checkpoints / "step-1", {"step": 1})


def test_a_new_directory_has_all_that_a_later_command_needs(directory):
    vocabulary, pairs, settings, _ = prepare_with(directory)
    assert directory.settings() == settings
    assert directory.vocabulary().sha256 == vocabulary.sha256
    assert settings.vocabulary_sha256 == vocabulary.sha256
    assert settings.vocabulary_size == vocabulary.size == 400
    assert settings.data_sha256 == token_files.hash_pairs(PAIRS)
    assert settings.corpus == {"corpus": "of this test"}
    sources = [source for source, _ in PAIRS]
    assert pairs.source_lengths.tolist() == [
        len(ids) for ids in vocabulary.encode(sources)
    ]


def test_a_run_goes_on_with_the_tokens_that_it_made(directory, caplog):
    first = prepare_with(directory)
    with caplog.at_level(logging.INFO, "absl"):
        again = prepare_with(directory)
    assert "Tokenizing" not in caplog.text
    assert "Learning the vocabulary" not in caplog.text
    for some, others in zip(first.pairs, again.pairs, strict=True):
        np.testing.assert_array_equal(some, others)
    assert again.settings == first.settings


def test_text_is_read_once_to_learn_and_once_to_tokenize(directory):
    text = Text()
    prepare(directory, HPARAMS, text.text, options=OPTIONS)
    assert text.times_read == 2
    prepare(directory, HPARAMS, text.text, options=OPTIONS)
    assert text.times_read == 3  # To see whether it is still the same.


def flip_a_bit(path):
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    path.write_bytes(content)


def cut_short(path):
    path.write_bytes(path.read_bytes()[:-4])


@pytest.mark.parametrize(
    ("name", "damage"),
    [
        ("source.ids", flip_a_bit),
        ("target.ids", cut_short),
        ("target.offsets.npy", cut_short),
        ("report.json", cut_short),
        ("checksums.json", pathlib.Path.unlink),  # Version 0.1.0 had none.
    ],
)
def test_damaged_tokens_are_made_anew(directory, caplog, name, damage):
    right = [np.array(array) for array in prepare_with(directory).pairs]
    damage(directory.tokens / name)
    _, found, *_ = prepare_with(directory)
    assert f"{directory.tokens} is damaged" in caplog.text
    for array, expected in zip(found, right, strict=True):
        np.testing.assert_array_equal(array, expected)
    caplog.clear()
    prepare_with(directory)
    assert not caplog.messages


def test_a_file_in_the_place_of_tokens_is_replaced(directory, caplog):
    prepare_with(directory)
    train(directory)
    files.remove_tree(directory.tokens)
    directory.tokens.write_text("")
    prepare_with(directory)
    assert (
        "tokens is damaged or was written by version 0.1.0: rewrit"
        in caplog.text
    )
    assert token_files.are_whole(directory.tokens)


def test_tokens_of_a_run_that_never_began_are_made_anew(directory):
    prepare_with(directory, PAIRS[1:])
    directory.settings_path.unlink()
    _, pairs, settings, _ = prepare_with(directory)
    assert len(pairs.source_lengths) == len(PAIRS)
    assert settings.data_sha256 == token_files.hash_pairs(PAIRS)


OTHER_NAMES = {
    "positions": "learned",
    "vocabulary_type": "unigram",
    "task": "parsing",
    "reserved_symbols": "<bt>",
    "norm": "pre",
    "activation": "gelu",
    "tied_embeddings": "none",
    "decoder_start": "zeros",
    "attention_bias": True,
    "logit_bias": True,
}


def other_value(value, field):
    if type(value) is int:
        return value + (3 if field == "attention_window" else 2)
    return value / 2 + 0.01 if type(value) is float else OTHER_NAMES[field]


# A tag dictionary is left out: it is refused earlier, unless task=parsing.
FIELDS = {f.name for f in dataclasses.fields(HParams)} - {"tag_dictionary"}


@pytest.mark.parametrize("field", sorted(FIELDS))
def test_a_run_goes_on_with_its_settings_but_for_some(directory, field):
    old = getattr(HPARAMS, field)
    new = other_value(old, field)
    settings = dataclasses.replace(HPARAMS, **{field: new})
    prepare_with(directory)
    train(directory)
    if field in MAY_CHANGE:
        assert prepare_with(directory, hparams=settings)
        assert directory.settings().hparams == settings
        return
    rule = f"was trained with {field}={old}; received {field}={new}"
    with pytest.raises(InputError, match=rule):
        prepare_with(directory, hparams=settings)


def test_a_run_does_not_go_on_with_other_text(directory):
    prepare_with(directory)
    train(directory)
    with pytest.raises(
        InputError, match="was trained with different training text"
    ):
        prepare_with(directory, PAIRS[1:])


def test_a_run_does_not_go_on_with_another_vocabulary(directory, tmp_path):
    prepare_with(directory)
    train(directory)
    other = tmp_path / "other.model"
    learning.learn(CORPUS, "bpe", 390).save(other)
    rule = f"was trained with a different vocabulary; received {other}"
    with pytest.raises(InputError, match=rule):
        prepare_with(directory, vocabulary=str(other))


def test_a_vocabulary_that_was_given_and_is_lost_is_not_learned_anew(
    directory, tmp_path
):
    given = tmp_path / "given.model"
    learning.learn([line for line, _ in PAIRS], "bpe", 390).save(given)
    prepare_with(directory, vocabulary=str(given))
    train(directory)
    (directory.path / "vocabulary.model").unlink()
    message = (
        "with a different vocabulary; received one learned from the training"
    )
    with pytest.raises(InputError, match=message):
        prepare_with(directory)


def test_a_run_finds_home(tmp_path, monkeypatch):
    monkeypatch.setenv("HOME", str(tmp_path))
    given = learning.learn([line for line, _ in PAIRS], "bpe", 390)
    given.save(tmp_path / "given.model")
    vocabulary, *_ = prepare_with(
        ModelDirectory("~/run"), vocabulary="~/given.model", cache_dir="~/cache"
    )
    assert vocabulary.sha256 == given.sha256
    assert (tmp_path / "cache").is_dir()


def test_a_run_does_not_go_on_with_the_vocabulary_of_another(directory):
    prepare_with(directory)
    train(directory)
    learning.learn(CORPUS, "bpe", 390).save(directory.path / "vocabulary.model")
    with pytest.raises(InputError, match="is not the vocabulary of this model"):
        prepare_with(directory)


def test_a_vocabulary_that_is_given_is_the_runs(directory, tmp_path):
    path = tmp_path / "given.model"
    given = learning.learn(CORPUS, "bpe", 390)
    given.save(path)
    assert prepare_with(directory, vocabulary=str(path)).settings == (
        directory.settings()
    )
    assert directory.vocabulary().sha256 == given.sha256


def test_a_warm_start_has_the_vocabulary_of_its_model(directory, tmp_path):
    warm = ModelDirectory(tmp_path / "warm")
    prepare_with(warm)
    hparams = dataclasses.replace(HPARAMS, vocabulary_size=390)
    for path in (warm.path, warm.checkpoints / "step-1"):
        cold = ModelDirectory(tmp_path / f"cold-{path.name}")
        prepare_with(cold, hparams=hparams, warm_start_from=str(path))
        assert cold.vocabulary().sha256 == warm.vocabulary().sha256
    path = tmp_path / "other.model"
    learning.learn(CORPUS, "bpe", 390).save(path)
    with pytest.raises(InputError, match="has another vocabulary than this"):
        prepare_with(
            directory, vocabulary=str(path), warm_start_from=str(warm.path)
        )


def test_settings_tell_how_many_sentences_a_training_line_has(directory):
    pairs = [(f"A {n}. {'B b.' * (n < 3)}", "Ein a.") for n in range(60)]
    settings = prepare_with(directory, pairs).settings
    assert settings.multi_sentence_share == 0.05
    lengths = [
        len(ids) for ids in directory.vocabulary().encode([s for s, _ in pairs])
    ]
    assert settings.long_line_tokens == int(np.percentile(lengths, 99))
    assert settings.splitting().whole_up_to == settings.long_line_tokens
    again = prepare_with(directory, pairs).settings
    assert again == settings


def test_micro_batches_are_as_given_then_as_begun_then_as_fits(directory):
    fits = prepare_with(directory, micro_batch_tokens=None)
    assert fits.settings.micro_batch_tokens >= 64
    given = prepare_with(directory, micro_batch_tokens=96)
    train(directory)
    assert given.settings.micro_batch_tokens == 96
    again = prepare_with(directory, micro_batch_tokens=None)
    assert again.settings.micro_batch_tokens == 96


def test_runs_share_the_tokens_of_a_cache(tmp_path, caplog):
    cache = tmp_path / "cache"
    directories = [ModelDirectory(tmp_path / name) for name in "ab"]
    with caplog.at_level(logging.INFO, "absl"):
        for directory in directories:
            prepare_with(directory, cache_dir=str(cache))
            assert not directory.tokens.exists()
    assert caplog.text.count("Tokenizing the training corpus") == 1
    assert caplog.text.count("Using the tokens in") == 1
    (tmp_path / "file").write_text("")
    with pytest.raises(InputError, match="--cache_dir must be a folder"):
        prepare_with(directories[0], cache_dir=str(tmp_path / "file"))


LEARNED, TOKENIZED = "Learning the vocabulary", "Tokenizing the training"


@pytest.mark.parametrize(
    ("changes", "is_made"),
    [
        ({"hparams": {"dropout": 0.3, "seed": 2}}, []),
        ({"hparams": {"max_length": 90}}, [TOKENIZED]),
        ({"hparams": {"vocabulary_size": 390}}, [LEARNED, TOKENIZED]),
        ({"hparams": {"reserved_symbols": "<bt>"}}, [LEARNED, TOKENIZED]),
        ({"pairs": PAIRS[1:]}, [LEARNED, TOKENIZED]),
    ],
)
def test_a_run_that_has_saved_nothing_may_begin_anew_with_others(
    directory, caplog, changes, is_made
):
    prepare_with(directory)
    hparams = dataclasses.replace(HPARAMS, **changes.get("hparams", {}))
    pairs = changes.get("pairs", PAIRS)
    with caplog.at_level(logging.INFO, "absl"):
        _, _, settings, _ = prepare_with(directory, pairs, hparams)
    assert directory.settings() == settings
    assert settings.hparams == hparams
    assert settings.data_sha256 == token_files.hash_pairs(pairs)
    assert settings.vocabulary_size == hparams.vocabulary_size
    made = [what for what in (LEARNED, TOKENIZED) if what in caplog.text]
    assert made == is_made


def test_a_wrong_vocabulary_does_not_outlive_a_run_that_saved_nothing(
    directory, tmp_path
):
    wrong = tmp_path / "wrong.model"
    learning.learn(CORPUS, "bpe", 400).save(wrong)
    given = prepare_with(directory, PAIRS, vocabulary=str(wrong))
    learned = prepare_with(directory, PAIRS)
    assert learned.vocabulary.sha256 != given.vocabulary.sha256
    assert learned.settings.vocabulary_is_learned


def test_settings_that_nobody_can_read_are_replaced_if_nothing_was_saved(
    directory,
):
    prepare_with(directory)
    text = directory.settings_path.read_text().replace(
        '"seed": 1', '"seed": -1'
    )
    directory.settings_path.write_text(text)
    assert prepare_with(directory).settings == directory.settings()


def test_the_settings_of_another_program_stay(directory):
    directory.path.mkdir()
    directory.settings_path.write_text('{"my": "app"}')
    with pytest.raises(InputError, match="was not written by a training run"):
        prepare_with(directory)
    assert directory.settings_path.read_text() == '{"my": "app"}'


def test_an_export_is_no_place_to_train(directory):
    (directory.path / "1").mkdir(parents=True)
    (directory.path / "1" / "saved_model.pb").touch()
    with pytest.raises(InputError, match=r"is an export, with .*1/saved_model"):
        prepare_with(directory)


def test_text_that_the_vocabulary_lacks_is_warned_of(
    directory, caplog, tmp_path
):
    model = io.BytesIO()
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter(["a b c"] * 9),
        model_writer=model,
        vocab_size=8,
        hard_vocab_limit=False,
        minloglevel=2,
    )
    path = tmp_path / "other.model"
    path.write_bytes(model.getvalue())
    prepare_with(directory, vocabulary=str(path))
    assert "is lost: learn a vocabulary from this text" in caplog.text


def test_an_empty_split_is_refused_by_name():
    text = TrainingText({}, {"train": lambda: PAIRS, "test": lambda: iter(())})
    with pytest.raises(InputError, match="the test text has no pairs to score"):
        text.held_out()


@pytest.mark.parametrize(
    ("pairs", "expected"),
    [
        (PAIRS, []),
        ([(s, PAIRS[0][1]) for s, _ in PAIRS], ["are the same line"]),
        ([(s, s) for s, _ in PAIRS], ["are copies of their sources"]),
    ],
)
def test_text_that_was_hardly_meant_is_warned_of_once(
    directory, caplog, pairs, expected
):
    prepare_with(directory, pairs)
    train(directory)
    prepare_with(directory, pairs)
    assert len(caplog.messages) == len(expected)
    for message, part in zip(caplog.messages, expected, strict=True):
        assert message.startswith("100% of the training targets")
        assert part in message


def test_copies_are_warned_of_where_both_sides_have_vocabularies(
    directory, tmp_path, caplog
):
    warm = ModelDirectory(tmp_path / "warm")
    warm.path.mkdir()
    targets = learning.learn(CORPUS, "bpe", 390)
    sources = learning.learn(CORPUS, "bpe", 400)
    Vocabulary(sources.model, targets).save_in(warm.path)
    copies = [(line, line) for line in CORPUS]
    prepare_with(directory, copies, warm_start_from=str(warm.path))
    assert ["are copies of their sources" in m for m in caplog.messages] == [
        True
    ]


def test_fewer_steps_than_until_an_evaluation_are_warned_of(directory, caplog):
    hparams = dataclasses.replace(HPARAMS, steps=9, warmup_steps=9)
    prepare_with(directory, hparams=hparams, evaluate_every_steps=9)
    assert not caplog.messages
    prepare_with(directory, hparams=hparams, evaluate_every_steps=10)
    assert "evaluate_every_steps=10 is above steps=9, so the dev" in caplog.text


def test_fewer_steps_than_the_warm_up_has_are_warned_of(directory, caplog):
    prepare_with(directory, hparams=dataclasses.replace(HPARAMS, steps=3999))
    assert "steps=3999 is below warmup_steps=4000" in caplog.text
    assert "--override=warmup_steps=1333" in caplog.text


def test_heads_of_another_depth_than_the_papers_are_warned_of(
    directory, tmp_path, caplog
):
    hparams = dataclasses.replace(HPARAMS, steps=4000, d_model=256)
    prepare_with(directory, hparams=hparams)
    assert "num_heads=8 times d_v=64 is not d_model=256" in caplog.text
    assert "--override=d_k=32 --override=d_v=32" in caplog.text
    caplog.clear()
    prepare_with(directory, hparams=dataclasses.replace(hparams, d_v=32))
    assert not caplog.messages
    options = {"warm_start_from": str(directory.path)}
    prepare_with(ModelDirectory(tmp_path / "warm"), hparams=hparams, **options)
    assert not caplog.messages


def test_checked_text_is_checked_as_it_is_read():
    def check(source, target):
        if not target:
            raise InputError(f"{source} has no target")
        return source, target.upper()

    pairs = [("a", "b"), ("c", "")]
    readers = {"train": lambda: pairs, "dev": lambda: pairs[:1]}
    text = TrainingText({}, readers).checked(check)
    assert text.held_out() == {"dev": [("a", "B")]}
    reading = iter(text.readers["train"]())
    assert next(reading) == ("a", "B")
    with pytest.raises(InputError, match="c has no target"):
        next(reading)


def weighted_text(sizes, weights):
    ends = np.cumsum([0, *sizes]).tolist()
    corpora = tuple(
        functools.partial(iter, PAIRS[a:b]) for a, b in itertools.pairwise(ends)
    )
    readers = {"train": lambda: iter(PAIRS[: ends[-1]])}
    return TrainingText({}, readers, corpora=corpora, weights=weights)


def test_weights_come_with_the_number_of_pairs_that_each_corpus_keeps(
    directory,
):
    hparams = dataclasses.replace(HPARAMS, max_length=20)
    text = weighted_text((100, 200), (2.0, 1.0))
    for _ in range(2):
        prepared = prepare(directory, hparams, text, options=OPTIONS)
        kept = [
            sum(
                max(map(len, prepared.vocabulary.encode(pair))) <= 20
                for pair in pairs
            )
            for pairs in (PAIRS[:100], PAIRS[100:300])
        ]
        assert sum(kept) < 300
        assert prepared.weighting == (kept, (2.0, 1.0))
        assert len(prepared.pairs.source_lengths) == sum(kept)
        assert directory.settings().corpus_weights == [2.0, 1.0]


@pytest.mark.parametrize(
    ("before", "now", "message"),
    [
        ((2.0, 1.0), (0.5, 1.0), "=2,1; received corpus_weights=0.5,1"),
        ((2.0, 1.0), (), "=2,1; received corpus_weights=none"),
        ((), (2.0, 1.0), "=none; received corpus_weights=2,1"),
    ],
)
def test_a_run_does_not_go_on_with_other_weights(
    directory, before, now, message
):
    prepare(directory, HPARAMS, weighted_text((9, 90), before), options=OPTIONS)
    train(directory)
    with pytest.raises(InputError, match=f"with corpus_weights{message}"):
        prepare(
            directory, HPARAMS, weighted_text((9, 90), now), options=OPTIONS
        )


def test_weighted_text_does_not_change_sides(directory):
    """Moving a pair from one corpus to the next changes the training text."""
    prepare(
        directory, HPARAMS, weighted_text((9, 90), (2.0, 1.0)), options=OPTIONS
    )
    train(directory)
    with pytest.raises(
        InputError, match="trained with different training text"
    ):
        prepare(
            directory,
            HPARAMS,
            weighted_text((10, 89), (2.0, 1.0)),
            options=OPTIONS,
        )


def test_a_reserved_symbol_is_one_id_of_the_vocabulary(directory, tmp_path):
    hparams = dataclasses.replace(HPARAMS, reserved_symbols="<bt>,<2de>")
    vocabulary, *_ = prepare_with(directory, hparams=hparams)
    assert set(vocabulary.reserved_ids(hparams.reserved)) == {"<bt>", "<2de>"}
    path = tmp_path / "other.model"
    learning.learn(CORPUS, "bpe", 400, reserved=["<bt>"]).save(path)
    with pytest.raises(InputError, match="this one lacks <2de>: start"):
        prepare_with(directory, hparams=hparams, vocabulary=str(path))


def test_a_corpus_with_a_weight_must_have_a_pair_to_train_on(directory):
    text = weighted_text((99, 0), (2.0, 1.0))
    with pytest.raises(InputError, match="corpus 2 of 2 has none"):
        prepare(directory, HPARAMS, text, options=OPTIONS)


GUIDED = dataclasses.replace(HPARAMS, guided_alignment=0.05, num_layers=3)
LINKS = [" ".join(f"{n}-{n}" for n, _ in enumerate(s.split())) for s in CORPUS]


def prepare_guided(directory, links=LINKS, **options):
    changed = dataclasses.replace(OPTIONS, **options)
    return prepare(directory, GUIDED, Text(links=links).text, options=changed)


def test_words_are_aligned_as_they_are_given(directory):
    vocabulary, pairs, settings, _ = prepare_guided(directory)
    plain = prepare_with(ModelDirectory(directory.path.with_name("plain")))
    assert vocabulary.sha256 == plain.vocabulary.sha256
    np.testing.assert_array_equal(pairs.target_ids, plain.pairs.target_ids)
    assert settings.data_sha256 != plain.settings.data_sha256
    assert settings.alignment_head == [1, 0, True]
    assert plain.settings.alignment_head is None
    lengths = [len(source.split()) for source in CORPUS]
    assert np.diff(pairs.links.offsets).tolist() == lengths
    ids = pairs.source_ids[: pairs.source_offsets[1]][None]
    found = pairs.links.matrices(np.array([0]), ids, ids)
    assert found[0].any(axis=0).tolist() == [True] * (ids.size - 1) + [False]


@pytest.mark.parametrize("has_cache", [False, True])
def test_a_run_goes_on_with_the_same_alignments_alone(
    directory, tmp_path, has_cache
):
    options = {"cache_dir": str(tmp_path / "cache")} if has_cache else {}
    first = prepare_guided(directory, **options)
    train(directory)
    # As if another head had been found to align better.
    changed = dataclasses.replace(
        first.settings, alignment_head=[2, None, False]
    )
    directory.save_settings(changed)
    again = prepare_guided(directory, **options)
    assert again.settings == changed
    np.testing.assert_array_equal(
        again.pairs.links.packed, first.pairs.links.packed
    )
    with pytest.raises(
        InputError, match="was trained with different training text"
    ):
        prepare_guided(directory, ["0-0", *LINKS[1:]], **options)


@pytest.mark.parametrize(
    ("links", "message"),
    [
        (LINKS[:-1], "a line for each training pair; they have fewer"),
        ([*LINKS, ""], "a line for each training pair; they have more"),
        ([LINKS[0], "0:1", *LINKS[2:]], "alignments, line 2: links must look"),
        (["99-0", *LINKS[1:]], "the alignments, line 1: link 99-0 is out of"),
        (None, "guided_alignment must be above 0 where there are alignments"),
    ],
)
def test_alignments_of_other_text_are_refused(directory, links, message):
    with pytest.raises(InputError, match=message):
        prepare_guided(directory, links)
    assert not directory.path.exists()


@pytest.mark.parametrize("links", [LINKS[:-1], [*LINKS, ""]])
def test_a_run_goes_on_with_as_many_lines_of_alignments(directory, links):
    prepare_guided(directory)
    train(directory)
    with pytest.raises(InputError, match="a line for each training pair"):
        prepare_guided(directory, links)


def test_a_warm_start_has_the_head_of_its_model(directory, tmp_path):
    prepare_guided(directory)
    options = {"warm_start_from": str(directory.path)}
    same = dataclasses.replace(HPARAMS, num_layers=3)
    for name, hparams, expected in (
        ("same", same, [1, 0, True]),
        ("deeper", HPARAMS, None),
        ("guided", dataclasses.replace(GUIDED, num_layers=2), [0, 0, True]),
    ):
        links = LINKS if hparams.is_guided else None
        found = prepare(
            ModelDirectory(tmp_path / name),
            hparams,
            Text(links=links).text,
            options=dataclasses.replace(OPTIONS, **options),
        )
        assert found.settings.alignment_head == expected


def test_alignments_of_several_corpora_are_one_behind_the_other(directory):
    parts = PAIRS[:40], PAIRS[40:]
    text = dataclasses.replace(
        Text(links=LINKS).text,
        corpora=tuple(functools.partial(iter, part) for part in parts),
        weights=(2.0, 1.0),
    )
    found = prepare(directory, GUIDED, text, options=OPTIONS)
    whole = prepare_guided(ModelDirectory(directory.path.with_name("whole")))
    np.testing.assert_array_equal(
        found.pairs.links.packed, whole.pairs.links.packed
    )
