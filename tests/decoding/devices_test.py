"""Several devices find what one finds, each with one batch at a time."""

import json
import subprocess
import sys
import threading

import binaries
import numpy as np
import pytest
import tensorflow as tf
from paths import HELPERS
from tiny_translator import (
    LINES,
    ONE_LAYER,
    learn_vocabulary,
    random_model,
    sentence,
)

from t2t_lite.decoding import devices
from t2t_lite.decoding.beam_search import Hypotheses
from t2t_lite.decoding.devices import DividedSearch
from t2t_lite.decoding.engine import model_engine
from t2t_lite.decoding.line_predictor import _side_by_side
from t2t_lite.decoding.search_options import SearchOptions
from t2t_lite.errors import InputError
from t2t_lite.translation.line_translator import LineTranslator

# The tests' process has one CPU device, which stands in for two.
TWO = ["/device:CPU:0"] * 2


@pytest.fixture(scope="module")
def translators():
    """The LineTranslators on one device, and on two."""
    vocabulary = learn_vocabulary()
    model = random_model(ONE_LAYER, vocabulary)
    options = SearchOptions.from_hparams(ONE_LAYER, nbest=2, tokens_at_once=48)
    return [
        LineTranslator(
            model_engine(model, vocabulary, options, xla=False, devices=names),
            vocabulary,
            options,
        )
        for names in (TWO[:1], TWO)
    ]


@pytest.mark.slow
def test_two_devices_find_what_one_finds_to_the_bit(
    translators, threads_at_work
):
    lines = [*LINES, "", sentence(40), *(sentence(n) for n in range(1, 14))]
    one, two = (list(each.stream(lines, 5)) for each in translators)
    assert one == two
    assert not threads_at_work()


@pytest.mark.slow
def test_a_line_at_a_time_is_translated_before_the_next_is_read(translators):
    read = []
    results = translators[1].stream((read.append(n) or n for n in LINES), 1)
    next(results)
    assert read == LINES[:1]


def test_two_devices_leave_blank_lines_blank(translators):
    one, two = (each.translate(["", " "]) for each in translators)
    assert one == two == [one[0]] * 2
    ids = tf.ragged.constant([[], []], tf.int32, ragged_rank=1)
    one, two = (each.translate_ids(ids) for each in translators)
    np.testing.assert_array_equal(one.scores_BW, two.scores_BW)


def test_a_graph_is_computed_by_the_first_device(translators):
    one, two = translators
    found = two(tf.constant(LINES)).numpy().tolist()
    assert [text.decode() for text in found] == one(LINES)


def test_a_copy_has_the_weights_and_the_precision():
    model = random_model(ONE_LAYER, learn_vocabulary())
    model = type(model)(ONE_LAYER, 40, 30, dtype="mixed_bfloat16")
    model.build()
    first, second = devices.make_replicas(model, TWO)
    assert first.model is model
    assert second.model is not model
    assert second.model.compute_dtype == "bfloat16"
    assert second.model.num_target_ids == 30
    for some, other in zip(second.model.weights, model.weights, strict=True):
        assert some.value is not other.value
        np.testing.assert_array_equal(some, other)


def test_a_copy_searches_in_int8_as_its_model_does():
    model = random_model(ONE_LAYER, learn_vocabulary())
    _, second = devices.make_replicas(model, TWO)
    assert second.model.search_precision == "float32"
    model.search_in_int8()
    _, second = devices.make_replicas(model, TWO)
    assert second.model.search_precision == "int8"


def test_one_device_needs_no_copy():
    model = random_model(ONE_LAYER, learn_vocabulary())
    for names in ((), TWO[:1]):
        assert devices.make_replicas(model, names) == []


@pytest.fixture
def threads_at_work():
    """A function that returns the pool threads of the test that still run."""
    before = threading.enumerate()
    return lambda: [
        thread
        for thread in threading.enumerate()
        if "ThreadPool" in thread.name and thread not in before
    ]


class _Search:
    """A search that finds the ids themselves; it fails if called while busy."""

    def __init__(self, meeting=None):
        self.calls, self._meeting, self._is_busy = 0, meeting, False

    def __call__(self, ids):
        assert not self._is_busy
        self._is_busy, self.calls = True, self.calls + 1
        if self._meeting:
            self._meeting.wait(timeout=60)
        dense = ids.to_tensor().numpy()
        self._is_busy = False
        if (dense == 13).any():
            raise InputError("13 is unlucky")
        return Hypotheses(dense[:, None], dense[:, :1] / 2.0)


def _alone(lengths_N):
    """Yields each row as a batch of its own, last row first."""
    for n in range(len(lengths_N))[::-1]:
        yield np.array([n])


def test_results_are_in_the_rows_of_their_sequences():
    divided = DividedSearch([_Search(), _Search()], _alone)
    ids = [[3, 4, 5], [7], [8, 9]]
    found = divided(tf.ragged.constant(ids, tf.int32))
    assert found.ids_BWT[:, 0].tolist() == [[3, 4, 5], [7, 0, 0], [8, 9, 0]]
    assert found.scores_BW[:, 0].tolist() == [1.5, 3.5, 4.0]


def test_devices_search_at_the_same_time_but_never_two_batches():
    meeting = threading.Barrier(3)
    searches = [_Search(meeting) for _ in range(3)]
    divided = DividedSearch(searches, _alone)
    ids = tf.ragged.constant([[n + 20] for n in range(12)], tf.int32)
    threads = [threading.Thread(target=divided, args=[ids]) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [search.calls for search in searches] == [8, 8, 8]


def test_what_a_device_raises_comes_out_and_ends_the_work(threads_at_work):
    searches = [_Search(), _Search()]
    divided = DividedSearch(searches, _alone)
    ids = tf.ragged.constant([[n] for n in range(1, 14)] * 9, tf.int32)
    with pytest.raises(InputError, match="unlucky"):
        divided(ids)
    assert not threads_at_work()
    assert sum(search.calls for search in searches) < 9 * 13
    divided(ids[:3])  # The devices are free again.


def test_blocks_come_in_order_however_long_each_takes():
    second_is_done = threading.Event()

    def double(n):
        if n == 1:
            assert second_is_done.wait(timeout=60)
        if n == 2:
            second_is_done.set()
        return 2 * n

    found = _side_by_side(double, ((n,) for n in (1, 2, 3)), 2)
    assert list(found) == [2, 4, 6]


def test_no_more_blocks_are_read_than_one_for_each_device_and_one():
    read = []
    arguments = ((read.append(n) or n,) for n in range(9))
    found = _side_by_side(lambda n: n, arguments, 2)
    for n in range(9):
        assert next(found) == n
        assert len(read) == min(n + 3, 9)


@pytest.mark.parametrize("is_raised", [True, False])
def test_no_block_is_begun_once_a_stream_has_ended(is_raised, threads_at_work):
    begun = []

    def note(n):
        begun.append(n)
        if n == 1 and is_raised:
            raise InputError("unlucky")
        return n

    found = _side_by_side(note, ((n,) for n in range(9)), 2)
    assert next(found) == 0
    if is_raised:
        with pytest.raises(InputError, match="unlucky"):
            next(found)
    else:
        found.close()
    assert set(begun) <= {0, 1, 2, 3}
    assert not threads_at_work()


def test_there_are_as_many_devices_as_are_asked_for():
    (name,) = devices.find_devices("all")
    assert "CPU:0" in name
    assert devices.find_devices(1) == devices.find_devices("1") == [name]
    for wrong in (0, 2, "2", "some", -1, True, 1.0):
        message = "must be all, or from 1 to 1 on this machine; received"
        with pytest.raises(InputError, match=f"{message} devices={wrong!r}"):
            devices.find_devices(wrong)


# Two CPUs.


@pytest.fixture(scope="module")
def two_cpus(tmp_path_factory):
    """The folder that a process with two CPUs wrote, and what it printed."""
    folder = tmp_path_factory.mktemp("two_cpus")
    done = subprocess.run(
        [sys.executable, HELPERS / "devices_check.py", folder],
        env=binaries.environment(),
        capture_output=True,
        text=True,
        timeout=500,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    return folder, json.loads(done.stdout.splitlines()[-1])


@pytest.mark.slow
def test_two_cpus_translate_a_file_as_one_does(two_cpus):
    folder, _ = two_cpus
    one, two = ((folder / f"{n}.txt").read_bytes() for n in ("1", "all"))
    assert one.count(b"\n") == 1000
    assert one == two


@pytest.mark.slow
def test_two_cpus_score_as_one_does(two_cpus):
    folder, _ = two_cpus
    one, two = ((folder / f"{n}.json").read_bytes() for n in ("1", "all"))
    assert one == two


@pytest.mark.slow
def test_each_device_has_weights_of_its_own(two_cpus):
    _, found = two_cpus
    for kind in ("copied", "mirrored", "dev"):
        names = [name[-5:] for name in found[kind]["devices"]]
        assert names == ["CPU:0", "CPU:1"]


@pytest.mark.slow
def test_mirrored_weights_are_those_of_now(two_cpus):
    _, found = two_cpus
    for of_one, of_all in zip(*found["mirrored"]["found"], strict=True):
        assert of_one == of_all
    before, after = found["mirrored"]["found"][0]
    assert before != after


@pytest.mark.slow
def test_two_devices_score_dev_as_one_does(two_cpus):
    """The scores of a run on the devices of a MirroredStrategy."""
    _, found = two_cpus
    of_one, of_all = found["dev"]["found"]
    for one, both in zip(of_one, of_all, strict=True):
        assert one.keys() == both.keys() == {"dev/perplexity", "dev/bleu"}
        assert both["dev/bleu"] == one["dev/bleu"]
        assert both["dev/perplexity"] == pytest.approx(
            one["dev/perplexity"], rel=1e-5
        )
    before, after = (one["dev/bleu"] for one in of_one)
    assert before == pytest.approx(100)
    assert after < 50
