"""The page of bin/serve translates in a browser as the user types."""

import asyncio
import json
import re
import threading
import time

import pytest
import tensorflow as tf
from browser import Page, opened_browser

pytest.importorskip("aiohttp")

from aiohttp import web
from selenium.webdriver.support.ui import WebDriverWait

from t2t_lite.serving import checks
from t2t_lite.serving.opening import Opened
from t2t_lite.serving.server import Server

pytestmark = pytest.mark.slow

SCRIPT = "<script>document.title='broken'</script>"


def upper(inputs):
    """Returns the texts in upper case as translations; "fail" fails."""
    is_right = tf.reduce_all(inputs != "fail")
    with tf.control_dependencies(
        [tf.debugging.Assert(is_right, ["it failed"])]
    ):
        return tf.strings.upper(inputs, encoding="utf-8")


def few(text_BN, score_BN):
    return {
        "outputs": tf.stack(text_BN, axis=1),
        "scores": tf.stack(
            [tf.fill(tf.shape(text_BN[0]), s) for s in score_BN], 1
        ),
        "truncated": text_BN[0] == "LONG",
    }


def translate(inputs):
    return {"outputs": upper(inputs)}


def translate_nbest(inputs):
    best = upper(inputs)
    nothing = tf.fill(tf.shape(best), "")
    texts = [best, best + " AGAIN", nothing]
    return few(texts, [-0.5, -1.0, -float("inf")])


def translate_prefix(inputs, prefixes):
    is_known = ~tf.strings.regex_full_match(prefixes, r"\?.*")
    begun = tf.where(is_known, prefixes + "… REST", "")
    return {"outputs": begun, "truncated": inputs == "LONG"}


def alternatives(inputs, prefixes):
    nothing = tf.fill(tf.shape(inputs), "")
    texts = [prefixes + "ONE END", prefixes + "TWO END", nothing]
    return few(texts, [-0.5, -2.0, -float("inf")])


def translate_aligned(inputs):
    """The n-th word attends to the n-th from the end."""
    inputs = tf.where(inputs == "split it", "split", inputs)
    words = tf.strings.split(inputs).to_tensor()
    eye = tf.eye(tf.shape(words)[1], batch_shape=[tf.shape(words)[0]])
    return {
        "source_tokens": "\u2581" + words,
        "target_tokens": "\u2581" + tf.strings.upper(words, encoding="utf-8"),
        "attention": tf.reverse(eye, [1]),
        "truncated": inputs == "LONG",
    }


def signature(function, *names):
    specs = [tf.TensorSpec([None], tf.string, name=name) for name in names]
    return tf.function(function, specs)


SIGNATURES = {
    "serving_default": signature(translate, "inputs"),
    "translate_nbest": signature(translate_nbest, "inputs"),
    "translate_prefix": signature(translate_prefix, "inputs", "prefixes"),
    "alternatives": signature(alternatives, "inputs", "prefixes"),
    "translate_aligned": signature(translate_aligned, "inputs"),
}


@pytest.fixture(scope="module")
def address():
    """The address of a server that runs in a thread of this process."""
    loop, bound = asyncio.new_event_loop(), checks.bound_socket(0)
    server = Server("tiny", Opened(SIGNATURES, "1", None), 60)

    async def start():
        runner = web.AppRunner(server.app())
        await runner.setup()
        await web.SockSite(runner, bound).start()
        return runner

    thread = threading.Thread(target=loop.run_forever)
    thread.start()
    runner = asyncio.run_coroutine_threadsafe(start(), loop).result()
    yield f"http://localhost:{bound.getsockname()[1]}/"
    asyncio.run_coroutine_threadsafe(runner.cleanup(), loop).result()
    loop.call_soon_threadsafe(loop.stop)
    thread.join()


@pytest.fixture(scope="module")
def browser(tmp_path_factory):
    with opened_browser(tmp_path_factory.mktemp("profile")) as browser:
        yield browser


class Translating(Page):
    """The page, and what a user does with it."""

    def wait(self, selector, text):
        """Waits until the selector finds one element, with this text."""

        def texts():
            return [element.text for element in self.all(selector)]

        WebDriverWait(self.browser, 10, 0.05).until(
            lambda _: texts() == [text],
            f"{selector} is {texts()}, not {text!r}",
        )

    def type_source(self, text):
        (source,) = self.all("#source")
        source.clear()
        source.send_keys(text)

    def marked(self):
        return [
            mark.text or mark.get_property("textContent")
            for mark in self.all("#marks mark")
        ]


@pytest.fixture
def page(browser, address):
    page = Translating(browser, address)
    yield page
    assert page.errors() == []


def test_it_translates_as_one_types_and_lists_others(page):
    assert page.text("h1") == "Translate by tiny"
    page.type_source("a dog runs")
    page.wait("#target", "A DOG RUNS")
    assert [b.text.split("\n") for b in page.all("#others button")] == [
        ["A DOG RUNS", "-0.50"],
        ["A DOG RUNS AGAIN", "-1.00"],
    ]
    page.type_source("LONG")
    page.wait("#status", "The text is too long: its end is left out.")
    page.type_source(" ")
    page.wait("#target", "")


def test_another_translation_is_taken_by_a_click(page):
    page.type_source("a dog")
    page.wait("#target", "A DOG")
    page.all("#others button")[1].click()
    page.wait("#target", "A DOG AGAIN")
    page.all("#others button")[0].click()
    page.wait("#target", "A DOG")


def test_a_click_on_a_word_offers_others_and_the_rest_follows(page):
    page.type_source("a dog runs")
    page.wait("#target", "A DOG RUNS")
    page.all("#target .word")[1].click()
    page.wait("#words li:first-child", "ONE END\n-0.50")
    assert len(page.all("#words button")) == 2
    page.all("#words button")[1].click()
    page.wait("#target", "A TWO END")
    assert [word.text for word in page.all("#target .kept")] == ["A", "TWO"]


def test_keys_choose_a_word(page):
    from selenium.webdriver.common.keys import Keys

    page.type_source("a dog runs")
    page.wait("#target", "A DOG RUNS")
    page.press(Keys.TAB)
    page.press(Keys.HOME, *[Keys.ARROW_RIGHT] * 4)
    page.actions.key_down(Keys.ALT).send_keys(Keys.ARROW_DOWN).key_up(
        Keys.ALT
    ).perform()
    page.wait("#words li:first-child", "ONE END\n-0.50")
    page.press(Keys.ESCAPE)
    assert page.all("#words button") == []
    page.actions.key_down(Keys.ALT).send_keys(Keys.ARROW_DOWN).key_up(
        Keys.ALT
    ).perform()
    page.wait("#words li:first-child", "ONE END\n-0.50")
    page.press(Keys.ARROW_DOWN, Keys.ENTER)
    page.wait("#target", "A TWO END")


def test_its_beginning_is_edited_in_place_and_the_rest_follows(page):
    from selenium.webdriver.common.keys import Keys

    page.type_source("a dog")
    page.wait("#target", "A DOG")
    page.press(Keys.TAB)
    page.press(Keys.HOME, Keys.ARROW_RIGHT, " b")
    page.wait("#target", "A b… REST")
    page.press("c")  # The caret is still after the b.
    page.wait("#target", "A bc… REST")


def test_pointing_at_a_word_marks_what_it_came_from(page):
    page.type_source("a dog runs")
    page.wait("#target", "A DOG RUNS")

    def marks_of(n):
        page.hover(page.all("h1")[0])
        page.hover(page.all("#target .word")[n])
        return page.marked()

    WebDriverWait(page.browser, 10).until(lambda _: marks_of(0) == ["runs"])
    assert marks_of(1) == ["dog"]
    page.hover(page.all("h1")[0])
    assert page.marked() == []


def test_attention_of_another_translation_marks_nothing(page):
    page.type_source("split it")
    page.wait("#target", "SPLIT IT")
    time.sleep(0.5)  # Long enough for its attention to arrive.
    page.hover(page.all("#target .word")[0])
    assert page.marked() == []


def test_what_was_there_comes_back(page):
    from selenium.webdriver.common.keys import Keys

    page.type_source("a dog runs")
    page.wait("#target", "A DOG RUNS")
    page.all("#others button")[1].click()
    page.wait("#target", "A DOG RUNS AGAIN")
    (target,) = page.all("#target")
    page.browser.execute_script("arguments[0].focus()", target)
    page.actions.key_down(Keys.CONTROL).send_keys("z").key_up(
        Keys.CONTROL
    ).perform()
    page.wait("#target", "A DOG RUNS")


def test_a_beginning_that_the_model_does_not_know_is_said(page):
    from selenium.webdriver.common.keys import Keys

    page.type_source("a dog")
    page.wait("#target", "A DOG")
    page.press(Keys.TAB, Keys.HOME, "?")
    page.wait("#status", "The model has no translation that begins like this.")
    page.press(Keys.BACKSPACE, "B")  # The text and the caret were kept.
    page.wait("#target", "B… REST")
    assert page.text("#status") == ""


def test_markup_stays_text(page):
    page.type_source(SCRIPT)
    page.wait("#target", SCRIPT.upper())
    assert page.browser.title == "Translate by tiny"
    assert page.all("#target script") == []


def test_an_error_of_the_server_is_shown_and_ends_nothing(browser, address):
    page = Translating(browser, address)
    page.type_source("fail")
    WebDriverWait(browser, 10).until(
        lambda _: page.text("#status").startswith("the model failed")
    )
    page.type_source("a")
    page.wait("#target", "A")
    assert page.text("#status") == ""
    browser.get_log("browser")  # Discards the log entry of status 500.


def test_a_server_that_is_gone_is_said(browser, address):
    page = Translating(
        browser, f"{address}?model=tiny&server=http://localhost:1/"
    )
    page.type_source("a")
    page.wait(
        "#status", "No answer from http://localhost:1: is the server running?"
    )
    page = Translating(browser, f"{address}?model=")
    assert "No model is given" in page.text("#status")
    browser.get_log("browser")


def test_it_asks_nobody_else(browser, address):
    browser.get_log("performance")
    page = Translating(browser, address)
    page.type_source("a dog")
    page.wait("#target", "A DOG")
    log = " ".join(each["message"] for each in browser.get_log("performance"))
    asked = {
        json.loads(f'"{url}"')
        for url in re.findall(r'"url":"((?:https?|wss?):[^"]*)"', log)
    }
    assert asked
    assert all(url.startswith(address) for url in asked)


@pytest.mark.parametrize("width", [320, 1000])
def test_it_fits_a_phone(browser, address, width):
    page = Translating(browser, address)
    browser.execute_cdp_cmd(
        "Emulation.setDeviceMetricsOverride",
        {"width": width, "height": 700, "deviceScaleFactor": 1, "mobile": True},
    )
    try:
        page.type_source("word " * 40 + "x" * 90)
        page.wait("#target", "WORD " * 40 + "X" * 90)
        page.all("#target .word")[30].click()
        WebDriverWait(browser, 10).until(lambda _: page.all("#words button"))
        size = "return [document.documentElement.scrollWidth, innerWidth]"
        scrolled, inner = browser.execute_script(size)
        assert scrolled <= inner == width
    finally:
        browser.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})
