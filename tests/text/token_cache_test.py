"""A cache has one complete copy of a corpus's tokens, whoever makes it."""

import itertools
import logging
import multiprocessing
import os
import shutil
import time

import numpy as np
import pytest
from token_pairs import arrays_of, pairs_in_memory

from t2t_lite.errors import InputError
from t2t_lite.text import learning, token_cache, token_files
from t2t_lite.text.vocabulary import Vocabulary

TEXT = [
    (f"A dog runs {n} times.", f"Ein Hund rennt {n}-mal.") for n in range(97)
]
DATA_SHA256 = token_files.hash_pairs(TEXT)
MAX_LENGTH = 40
PROCESSES = 3


@pytest.fixture(scope="module")
def vocabulary():
    return learning.learn(itertools.chain(*TEXT), "bpe", 310)


def tokenizer_of(vocabulary, max_length=MAX_LENGTH):
    return token_files.PairTokenizer(
        vocabulary, vocabulary.encode_flat, max_length
    )


class Cache:
    """A cache directory that counts how often the text is read for it."""

    def __init__(self, path, vocabulary):
        self.path, self.vocabulary = path, vocabulary
        self.times_read = 0

    def __call__(self, text=TEXT, data_sha256=None, max_length=MAX_LENGTH):
        def read_corpora():
            self.times_read += 1
            return [iter(text)]

        return token_cache.shared_tokens(
            self.path,
            read_corpora,
            data_sha256 or token_files.hash_pairs(text),
            tokenizer=tokenizer_of(self.vocabulary, max_length),
        )

    def copies(self):
        return sorted(path for path in self.path.iterdir() if path.is_dir())

    def copy(self):
        (copy,) = self.copies()
        return copy


@pytest.fixture
def cache(tmp_path, vocabulary):
    return Cache(tmp_path / "new" / "cache", vocabulary)


def assert_is_text(pairs, vocabulary, text=TEXT):
    expected = pairs_in_memory(
        *(vocabulary.encode([pair[n] for pair in text]) for n in (0, 1))
    )
    for found, array in zip(pairs, expected, strict=True):
        np.testing.assert_array_equal(found, array)


def test_tokens_are_made_once_and_used_again(cache, vocabulary, caplog):
    with caplog.at_level(logging.INFO, "absl"):
        pairs, report = cache()
        assert_is_text(pairs, vocabulary)
        assert "Tokenizing the training corpus into" in caplog.text
        assert "Using" not in caplog.text
        caplog.clear()
        again, same_report = cache()
        assert_is_text(again, vocabulary)
        assert caplog.messages == [f"Using the tokens in {cache.copy()}."]
    assert cache.times_read == 1
    assert report == same_report
    assert report.key == tokenizer_of(vocabulary).key(DATA_SHA256)


def test_a_copy_that_cannot_be_read_for_now_is_no_damaged_one(
    cache, monkeypatch
):
    cache()

    def fails(_):
        raise OSError("stale file handle")

    with monkeypatch.context() as stale:
        stale.setattr(token_files, "_checksums", fails)
        with pytest.raises(OSError, match="stale"):
            cache()
    cache()
    assert cache.times_read == 1


def test_what_is_in_the_cache_is_mapped_into_memory(cache):
    for pairs, _ in (cache(), cache()):
        assert all(isinstance(array, np.memmap) for array in arrays_of(pairs))


def test_tokens_of_other_text_vocabulary_or_length_lie_beside(
    cache, vocabulary
):
    cache()
    cache(TEXT[1:])
    cache(max_length=MAX_LENGTH + 1)
    cache.vocabulary = learning.learn(itertools.chain(*TEXT), "unigram", 310)
    pairs, _ = cache()
    assert len(cache.copies()) == cache.times_read == 4
    assert_is_text(pairs, cache.vocabulary)
    cache.vocabulary = vocabulary
    pairs, report = cache(TEXT[1:])
    assert_is_text(pairs, vocabulary, TEXT[1:])
    assert report.kept == len(TEXT) - 1
    assert cache.times_read == 4


def cut_short(path):
    path.write_bytes(path.read_bytes()[:-4])


def flip_a_bit(path):
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    path.write_bytes(content)


DAMAGE = {"cut": cut_short, "flipped": flip_a_bit, "gone": os.unlink}
FILES = [*token_files._CHECKED, token_files._CHECKSUMS]


@pytest.mark.parametrize("damage", DAMAGE)
@pytest.mark.parametrize("name", FILES)
def test_a_damaged_copy_is_made_anew(cache, vocabulary, caplog, name, damage):
    cache()
    DAMAGE[damage](cache.copy() / name)
    pairs, _ = cache()
    assert_is_text(pairs, vocabulary)
    assert "is damaged: writing it again" in caplog.text
    assert cache.times_read == 2
    caplog.clear()
    assert_is_text(cache()[0], vocabulary)
    assert cache.times_read == 2
    assert not caplog.messages


def test_a_damaged_copy_that_a_run_reads_stays_readable(cache, vocabulary):
    cache()
    flip_a_bit(cache.copy() / "checksums.json")
    before, _ = token_files.load_pairs(cache.copy())
    cache()
    assert_is_text(before, vocabulary)


def test_a_copy_of_another_name_is_not_used(cache, vocabulary):
    cache(TEXT[1:])
    other = cache.copy()
    cache()
    (mine,) = set(cache.copies()) - {other}
    shutil.rmtree(mine)
    os.rename(other, mine)
    pairs, _ = cache()
    assert_is_text(pairs, vocabulary)
    assert cache.times_read == 3


def test_what_a_killed_run_left_is_removed_and_not_used(cache, vocabulary):
    cache()
    copy = cache.copy()
    half = copy.with_name(f"writing-{copy.name}-1")
    # Version 0.1.0 left such a folder.
    shutil.copytree(copy, copy.with_name(f"{copy.name}.tmp"))
    os.rename(copy, half)
    pairs, _ = cache()
    assert_is_text(pairs, vocabulary)
    assert cache.copies() == [copy]
    assert cache.times_read == 2


@pytest.mark.parametrize("error", [OSError("unreadable"), KeyboardInterrupt()])
def test_a_text_that_fails_in_the_middle_leaves_no_copy(
    cache, vocabulary, error
):
    def failing():
        yield TEXT[0]
        raise error

    with pytest.raises(type(error)):
        cache(failing(), DATA_SHA256)
    assert cache.copies() == []
    assert_is_text(cache()[0], vocabulary)


def test_a_text_that_changes_while_it_is_read_leaves_no_copy(cache):
    with pytest.raises(InputError, match="changed while it was read"):
        cache(TEXT[1:], DATA_SHA256)
    assert cache.copies() == []


def make_at_once(path, model, barrier, queue):
    """Requests the tokens, in its own process, when all the others do."""

    def slow_pairs():
        for pair in TEXT:
            time.sleep(0.01)
            yield pair

    messages = []
    token_cache.logging.info = lambda *args: messages.append(args[0])
    barrier.wait(60)
    pairs, _ = token_cache.shared_tokens(
        path,
        lambda: [slow_pairs()],
        DATA_SHA256,
        tokenizer=tokenizer_of(Vocabulary(model)),
    )
    queue.put((messages, [np.array(array) for array in pairs]))


@pytest.mark.slow
def test_processes_that_ask_at_once_end_with_one_copy(cache, vocabulary):
    context = multiprocessing.get_context("spawn")
    barrier, queue = context.Barrier(PROCESSES), context.Queue()
    arguments = cache.path, vocabulary.model, barrier, queue
    processes = [
        context.Process(target=make_at_once, args=arguments, daemon=True)
        for _ in range(PROCESSES)
    ]
    for process in processes:
        process.start()
    results = [queue.get(timeout=60) for _ in processes]
    for process in processes:
        process.join(60)
        assert process.exitcode == 0
    first_words = sorted(
        [message.split()[0] for message in messages] for messages, _ in results
    )
    assert first_words == [["Tokenizing"]] + [["Waiting", "Using"]] * (
        PROCESSES - 1
    )
    for _, pairs in results:
        assert_is_text(pairs, vocabulary)
    assert len(cache.copies()) == 1
    assert_is_text(cache()[0], vocabulary)
    assert cache.times_read == 0
