"""A run's batches, from any step on, are those of an uninterrupted run."""

import collections
import threading
import time

import numpy as np
import pytest
from bilingual_text import CORPUS

from t2t_lite import tasks
from t2t_lite.errors import InputError
from t2t_lite.hparams import HParams
from t2t_lite.storage.model_directory import ModelDirectory
from t2t_lite.text import learning
from t2t_lite.text.epochs import Weighting
from t2t_lite.text.token_files import encode_pairs
from t2t_lite.training import feeding
from t2t_lite.training.preparation import Prepared

LINES = CORPUS[:150]
SETTINGS = {
    "max_length": 90,
    "tokens_per_batch": 700,
    "num_buckets": 4,
    "subword_sampling": 0.2,
}


def never():
    return False


@pytest.fixture(scope="module")
def vocabulary():
    return learning.learn(CORPUS, "bpe", 420)


def make_feed(
    vocabulary, folder, task="translation", weighting=None, **changes
):
    pairs = encode_pairs(
        [(line, line[::-1]) for line in LINES],
        vocabulary,
        vocabulary.encode_flat,
    )
    return feeding.make_feed(
        Prepared(vocabulary, pairs, None, weighting=weighting),
        HParams(**SETTINGS | changes),
        tasks.named(task),
        folder=folder,
    )


def as_lists(batch):
    return batch.source_ids.tolist(), batch.target_ids.tolist()


def batches(feed, first_step, end_step):
    return [
        as_lists(batch) for batch in feed.batches(first_step, end_step, never)
    ]


@pytest.fixture(scope="module")
def whole(vocabulary, tmp_path_factory):
    """The batches of some epochs, and the state before each batch."""
    feed = make_feed(vocabulary, tmp_path_factory.mktemp("whole"))
    found, states = [], []
    for step, batch in enumerate(feed.batches(0, 60, never)):
        states.append(feed.tensors(step))
        found.append(as_lists(batch))
    assert states[-1]["plan_epoch"] > 2
    return found, states


def test_any_step_is_resumed_from_its_state(vocabulary, whole, tmp_path):
    found, states = whole
    starts = [int(state["plan_first_step"]) for state in states]
    assert starts == sorted(starts)
    second = starts.index(starts[-1])
    for step in (0, 1, second - 1, second, second + 1, 59):
        feed = make_feed(vocabulary, tmp_path)
        feed.restore(states[step], step, "step-N")
        assert batches(feed, step, 60) == found[step:]


def test_batches_have_shapes_that_are_known_beforehand(
    vocabulary, whole, tmp_path
):
    shapes = make_feed(vocabulary, tmp_path).shapes
    assert 1 < len(shapes) <= 4
    for source_ids, target_ids in whole[0]:
        assert (
            len(source_ids[0]),
            len(target_ids[0]),
            len(source_ids),
        ) in shapes


def test_batches_are_pairs_in_other_pieces(vocabulary, whole):
    pieces_of = {}
    for source_ids, target_ids in whole[0]:
        sources, targets = map(vocabulary.decode, (source_ids, target_ids))
        assert [line[::-1] for line in sources] == targets
        for line, ids in zip(sources, source_ids, strict=True):
            pieces_of.setdefault(line, set()).add(tuple(filter(None, ids)))
    assert set(pieces_of) == set(LINES)
    assert sum(len(pieces) > 1 for pieces in pieces_of.values()) > 100


def test_a_parsers_targets_are_not_sampled(vocabulary, tmp_path):
    feed = make_feed(vocabulary, tmp_path, "parsing")
    usual = {tuple(i) for i in vocabulary.encode([s[::-1] for s in LINES])}
    usual_sources = {tuple(ids) for ids in vocabulary.encode(LINES)}
    for source_ids, target_ids in batches(feed, 0, 5):
        assert {tuple(filter(None, ids)) for ids in target_ids} <= usual
        drawn = {tuple(filter(None, ids)) for ids in source_ids}
        assert not drawn <= usual_sources


def test_a_feed_that_is_reset_begins_anew(vocabulary, whole, tmp_path):
    found, states = whole
    feed = make_feed(vocabulary, tmp_path)
    feed.restore(states[-1], 59, "step-59")
    feed.reset()
    # It need not have yielded the batches before these.
    assert batches(feed, 57, 60) == found[57:]
    feed.reset()
    assert batches(feed, 0, 3) == found[:3]


def test_one_epoch_is_tokenized_to_resume(
    vocabulary, whole, tmp_path, monkeypatch
):
    """Besides some pairs of the first epoch, which give the shapes."""
    sampled = []
    sample = feeding.SubwordSampler.sample

    def counted(self, pairs, epoch, max_lengths, **options):
        sampled.append((epoch, len(pairs.source_lengths)))
        return sample(self, pairs, epoch, max_lengths=max_lengths, **options)

    _, states = whole
    monkeypatch.setattr(feeding, "_PAIRS_LOOKED_AT", 30)
    monkeypatch.setattr(feeding.SubwordSampler, "sample", counted)
    feed = make_feed(vocabulary, tmp_path)
    feed.restore(states[-1], 59, "step-59")
    batches(feed, 59, 60)
    assert sampled == [(0, 30), (states[-1]["plan_epoch"], len(LINES))]


def test_nothing_is_tokenized_where_nothing_is_to_do(
    vocabulary, tmp_path, monkeypatch
):
    feed = make_feed(vocabulary, tmp_path)
    monkeypatch.setattr(feeding.SubwordSampler, "sample", pytest.fail)
    assert batches(feed, 5, 5) == []


def test_a_stop_ends_the_first_tokenization(vocabulary, tmp_path):
    feed = make_feed(vocabulary, tmp_path)

    def tokenize(epoch, should_stop):
        end = time.monotonic() + 60
        while time.monotonic() < end and not should_stop():
            time.sleep(0.01)
        return original(epoch, never)

    original, feed._tokenize = feed._tokenize, tokenize
    assert list(feed.batches(0, 60, lambda: True)) == []


def test_a_reader_that_is_left_ends_the_work_in_the_background(
    vocabulary, tmp_path
):
    feed = make_feed(vocabulary, tmp_path)
    stops = []

    def tokenize(epoch, should_stop):
        if epoch > 0:
            stops.append(should_stop)
        return original(epoch, should_stop)

    original, feed._tokenize = feed._tokenize, tokenize
    reading = feed.batches(0, 60, never)
    next(reading)
    reading.close()
    (should_stop,) = stops
    assert should_stop()
    assert not list(tmp_path.iterdir())


def test_a_stop_ends_the_wait_for_the_next_epoch(
    vocabulary, whole, tmp_path, monkeypatch
):
    """The batches of the first epoch are all yielded before that."""
    feed = make_feed(vocabulary, tmp_path)
    is_asked_for = threading.Event()

    def tokenize(epoch, should_stop):
        if epoch == 0:
            return original(epoch, should_stop)
        is_asked_for.set()
        end = time.monotonic() + 60
        while time.monotonic() < end and not should_stop():
            time.sleep(0.01)
        return None if should_stop() else original(epoch, never)

    original, feed._tokenize = feed._tokenize, tokenize
    found = [
        as_lists(batch) for batch in feed.batches(0, 60, is_asked_for.is_set)
    ]
    epochs = [int(state["plan_epoch"]) for state in whole[1]]
    assert found == whole[0][: epochs.index(1)]


@pytest.mark.parametrize(
    "damage",
    [
        {"plan_epoch": np.zeros((2, 2), np.int64)},
        {"plan_epoch": np.int64(-1)},
        {"plan_first_step": np.float64(1.5)},
        {"plan_first_step": np.int64(60)},
        {"plan_carried_over": np.full(1, len(LINES), np.int32)},
        {"plan_carried_over": np.full(1, -1, np.int32)},
        {"plan_carried_over": np.zeros(10_000, np.int32)},
        {"plan_carried_over": np.zeros((1, 1), np.int32)},
    ],
)
def test_a_plan_that_cannot_be_of_this_text_is_refused(
    vocabulary, whole, tmp_path, damage
):
    feed, tensors = make_feed(vocabulary, tmp_path), whole[1][59]
    with pytest.raises(InputError, match="step-59 is damaged: its batch plan"):
        feed.restore(tensors | damage, 59, "step-59")
    (name,) = damage
    without = {n: value for n, value in tensors.items() if n != name}
    with pytest.raises(InputError, match="step-59 is damaged: its batch plan"):
        feed.restore(without, 59, "step-59")


def test_workers_go_on_where_the_chief_does(
    vocabulary, whole, tmp_path, monkeypatch
):
    """Only the chief has read the checkpoint."""
    found, states = whole
    chief, worker = (make_feed(vocabulary, tmp_path) for _ in range(2))
    chief.restore(states[45], 45, "step-45")
    sent = []

    def send(_, value):
        sent.append(value)
        return value

    monkeypatch.setattr(feeding, "value_from_chief", send)
    chief.copy_from_chief(None)
    shapes = [np.shape(value) for value in sent]

    def receive(_, value):
        assert np.shape(value) == shapes.pop(0)
        return sent.pop(0)

    monkeypatch.setattr(feeding, "value_from_chief", receive)
    worker.copy_from_chief(None)
    assert states[45]["plan_epoch"] > 0
    assert batches(worker, 45, 60) == found[45:]


def test_the_error_that_ends_the_batches_is_the_one_that_was_raised(
    vocabulary, tmp_path
):
    feed = make_feed(vocabulary, tmp_path)

    def tokenize(epoch, should_stop):
        if epoch > 0:
            raise OSError("no space left")
        return original(epoch, should_stop)

    original, feed._tokenize = feed._tokenize, tokenize
    with pytest.raises(OSError, match="no space left"):
        batches(feed, 0, 60)


def test_without_sampling_a_checkpoint_keeps_nothing_of_the_plan(
    vocabulary, tmp_path
):
    feed = make_feed(vocabulary, tmp_path, subword_sampling=0.0)
    assert len(batches(feed, 3, 5)) == 2
    assert feed.tensors(5) == {}
    assert not ModelDirectory(tmp_path).tokens.exists()


# Weights.


@pytest.mark.parametrize("sampling", [0.0, 0.2])
def test_weighted_batches_are_resumed_at_any_step(
    vocabulary, tmp_path, sampling
):
    options = {
        "weighting": Weighting([50, 100], [2, 1]),
        "subword_sampling": sampling,
    }
    feed = make_feed(vocabulary, tmp_path, **options)
    found, states = [], []
    for step, batch in enumerate(feed.batches(0, 60, never)):
        states.append(feed.tensors(step))
        found.append(as_lists(batch))
    assert states[-1]["plan_epoch"] > 2
    for step in (1, 20, 59):
        feed = make_feed(vocabulary, tmp_path, **options)
        feed.restore(states[step], step, "step-N")
        assert batches(feed, step, 60) == found[step:]


@pytest.mark.parametrize("sampling", [0.0, 0.2])
def test_pairs_are_fed_in_proportion_to_weights(vocabulary, tmp_path, sampling):
    feed = make_feed(
        vocabulary,
        tmp_path,
        weighting=Weighting([50, 100], [2, 1]),
        subword_sampling=sampling,
    )
    counts = collections.Counter(
        line
        for source_ids, _ in batches(feed, 0, 500)
        for line in vocabulary.decode(source_ids)
    )
    first, second = (
        sum(counts[line] for line in lines) / len(lines)
        for lines in (LINES[:50], LINES[50:])
    )
    assert first / second == pytest.approx(2, rel=0.03)


def test_weights_of_one_give_the_batches_of_none(vocabulary, tmp_path):
    settings = {"subword_sampling": 0.0}
    weighting = Weighting([50, 100], [1, 1])
    feeds = [
        make_feed(vocabulary, tmp_path, weighting=w, **settings)
        for w in (None, weighting)
    ]
    assert batches(feeds[0], 0, 60) == batches(feeds[1], 0, 60)
