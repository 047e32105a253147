"""Clients' requests share calls, and each gets its own outputs."""

import asyncio
import threading

import numpy as np
import pytest
import tensorflow as tf

from t2t_lite.serving.batched import BatchedModel, TooBusyError


class Echo:
    """A signature that returns its texts and records those of each call."""

    def __init__(self):
        self.calls = []
        self.may_go_on = threading.Event()
        self.may_go_on.set()

    def __call__(self, inputs):
        self.may_go_on.wait()
        self.calls.append([text.decode() for text in inputs.numpy()])
        if b"fail" in inputs.numpy():
            raise ValueError("it failed")
        return {"outputs": inputs, "lengths": tf.strings.length(inputs)}


@pytest.fixture
def echo():
    return Echo()


def model(echo, **limits):
    names = ("serving_default", "translate_nbest", "translate_aligned")
    return BatchedModel(dict.fromkeys(names, echo), **limits)


def predict(model, *texts, signature="serving_default"):
    texts = [text.encode() for text in texts]
    return model.predict(signature, {"inputs": texts})


async def behind_another(model, echo, *requests):
    """Returns the results of requests that arrive while another one runs."""
    echo.may_go_on.clear()
    tasks = [asyncio.create_task(predict(model, "first"))]
    await asyncio.sleep(0)
    tasks += map(asyncio.create_task, requests)
    await asyncio.sleep(0.02)
    echo.may_go_on.set()
    _, *results = await asyncio.gather(*tasks, return_exceptions=True)
    return results


def texts_of(result):
    return [text.decode() for text in result["outputs"]]


def test_requests_that_wait_are_computed_together(echo):
    async def run():
        shared = model(echo)
        requests = (
            predict(shared, "a", "bb"),
            predict(shared),
            predict(shared, "c"),
        )
        return await behind_another(shared, echo, *requests)

    results = asyncio.run(run())
    assert echo.calls == [["first"], ["a", "bb", "c"]]
    assert [*map(texts_of, results)] == [["a", "bb"], [], ["c"]]
    np.testing.assert_array_equal(results[0]["lengths"], [1, 2])


def test_signatures_are_computed_apart_in_the_order_of_their_first(echo):
    async def run():
        shared = model(echo)
        return await behind_another(
            shared,
            echo,
            predict(shared, "n", signature="translate_nbest"),
            predict(shared, "a"),
            predict(shared, "m", signature="translate_nbest"),
        )

    results = asyncio.run(run())
    assert echo.calls == [["first"], ["n", "m"], ["a"]]
    assert [*map(texts_of, results)] == [["n"], ["a"], ["m"]]


def test_attention_which_is_padded_is_computed_for_each_alone(echo):
    async def run():
        shared = model(echo)
        alone = (
            predict(shared, text, signature="translate_aligned")
            for text in "ab"
        )
        return await behind_another(shared, echo, *alone)

    asyncio.run(run())
    assert echo.calls == [["first"], ["a"], ["b"]]


def test_no_more_are_computed_together_than_may_be(echo):
    async def run():
        shared = model(echo, max_batch_texts=3)
        requests = (
            predict(shared, *texts) for texts in ("ab", "cd", "e", "fghi")
        )
        return await behind_another(shared, echo, *requests)

    results = asyncio.run(run())
    assert [*map(texts_of, results)] == [[*"ab"], [*"cd"], ["e"], [*"fghi"]]
    assert echo.calls == [["first"], [*"abe"], [*"cd"], [*"fghi"]]


def test_too_many_that_wait_are_refused(echo):
    async def run():
        shared = model(echo, most_waiting=2)
        requests = (predict(shared, *texts) for texts in ("ab", "c", ""))
        return await behind_another(shared, echo, *requests)

    kept, refused, empty = asyncio.run(run())
    assert texts_of(kept) == ["a", "b"]
    assert isinstance(refused, TooBusyError)
    assert texts_of(empty) == []


def test_who_is_gone_does_not_count(echo):
    async def run():
        shared = model(echo, most_waiting=1)
        gone = asyncio.wait_for(predict(shared, "late"), 0.001)

        async def after():
            await asyncio.sleep(0.005)
            return await predict(shared, "a")

        return await behind_another(shared, echo, gone, after())

    late, patient = asyncio.run(run())
    assert isinstance(late, TimeoutError)
    assert texts_of(patient) == ["a"]


def test_what_was_canceled_is_not_computed(echo):
    async def run():
        shared = model(echo)
        impatient = asyncio.wait_for(predict(shared, "late"), 0.001)
        return await behind_another(
            shared, echo, impatient, predict(shared, "a")
        )

    late, patient = asyncio.run(run())
    assert isinstance(late, TimeoutError)
    assert texts_of(patient) == ["a"]
    assert echo.calls == [["first"], ["a"]]


def test_an_error_is_told_to_all_that_it_concerns_and_ends_nothing(echo):
    async def run():
        shared = model(echo)
        failed = await behind_another(
            shared, echo, predict(shared, "fail"), predict(shared, "with it")
        )
        return failed, await predict(shared, "after")

    failed, after = asyncio.run(run())
    assert [*map(str, failed)] == ["it failed"] * 2
    assert texts_of(after) == ["after"]
