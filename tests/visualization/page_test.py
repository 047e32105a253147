"""The page is complete, small and safe for any text, and works in a browser."""

import html.parser
import json
import re

import numpy as np
import pytest
from browser import Page, opened_browser
from tiny_attention import HOSTILE, made_up_maps

from t2t_lite.visualization import maps as attention_maps
from t2t_lite.visualization import page as attention_page
from t2t_lite.visualization.maps import select

SOURCE = ["▁the", "▁dog", "▁run", "s", "</s>"]
TARGET = ["▁der", "▁Hund", "▁rennt", ".", "▁Er", "▁rennt", "</s>"]


def page_of(maps, kind="encoder_self", **choice):
    return attention_page.render_page(maps, select(maps, kind, **choice))


class Parsed(html.parser.HTMLParser):
    """The tags of a page in order, and the text that follows each."""

    def __init__(self, page):
        super().__init__()
        self.tags, self._texts = [""], [""]
        self.feed(page)
        self.close()

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)
        self._texts.append("")

    def handle_data(self, data):
        self._texts[-1] += data

    def text(self, tag):
        """Returns the text that follows the first such tag."""
        return self._texts[self.tags.index(tag)]

    @property
    def data(self):
        return json.loads(self.text("script"))


def test_hostile_tokens_stay_text():
    harmless = Parsed(page_of(made_up_maps(SOURCE, TARGET)))
    maps = made_up_maps(HOSTILE, [*TARGET, *HOSTILE])
    found = Parsed(page_of(maps))
    assert found.tags == harmless.tags
    assert found.tags.count("script") == 2
    assert found.text("title").strip() == f"Attention: {' '.join(HOSTILE)}"
    assert found.text("h1").strip() == " ".join(HOSTILE)
    assert found.data["kinds"][0]["tokens"] == [HOSTILE, HOSTILE]
    assert found.data["kinds"][2]["tokens"] == [[*TARGET, *HOSTILE], HOSTILE]


def test_the_page_has_all_weights_to_three_decimals():
    maps = made_up_maps(SOURCE, TARGET)
    data = Parsed(page_of(maps)).data
    for kind, found in zip(attention_maps.KINDS, data["kinds"], strict=True):
        expected = getattr(maps, kind).weights_NHLM
        weights = np.reshape(found["weights"], expected.shape)
        np.testing.assert_allclose(
            weights / data["units"], expected, atol=0.00051
        )
        assert found["title"] == attention_maps.KINDS[kind].title


def test_the_page_starts_with_what_is_selected():
    maps = made_up_maps(SOURCE, TARGET)
    data = Parsed(page_of(maps, "decoder_self", layer=0, heads=[2, 1])).data
    assert (data["kind"], data["layer"], data["heads"]) == (1, 0, [2, 1])
    assert len(data["colors"]) == 3


def test_the_caption_says_how_the_decoder_is_shifted_and_words_are_joined():
    maps = made_up_maps(SOURCE, TARGET)
    _, decoder, _ = Parsed(page_of(maps)).data["kinds"]
    assert "shifted right by one" in decoder["caption"]
    assert "joined" not in decoder["caption"]
    joined = Parsed(page_of(attention_maps.join_words(maps))).data["kinds"]
    assert all("pieces of a word are joined" in k["caption"] for k in joined)


def test_the_page_asks_the_network_for_nothing():
    page = page_of(made_up_maps(SOURCE, TARGET))
    assert "default-src 'none'" in page
    assert not re.search(r"https?:|//[a-z]|\bsrc\s*=|@import|url\(|fetch", page)
    assert re.findall(r'href="([^"]*)"', page) == ["data:,"]


def test_60_tokens_in_6_layers_of_8_heads_are_less_than_two_megabytes():
    tokens = [f"▁word{n}" for n in range(59)] + ["</s>"]
    page = page_of(made_up_maps(tokens, tokens, num_layers=6, num_heads=8))
    assert len(page.encode()) < 2e6


def test_16_heads_have_16_colors():
    assert len({attention_page.head_color(head) for head in range(16)}) == 16
    assert attention_page.head_color(16) == attention_page.head_color(0)


# In a browser. (These come last: the quick tests above need none.)


@pytest.fixture(scope="module")
def browser(tmp_path_factory):
    with opened_browser(tmp_path_factory.mktemp("profile")) as browser:
        yield browser


class AttentionPage(Page):
    """A page that is written to a file and opened in a browser."""

    def __init__(self, browser, path, text):
        path.write_text(text, "utf-8")
        super().__init__(browser, path.as_uri())

    def picture(self):
        script = "return document.querySelector('canvas').toDataURL()"
        return self.browser.execute_script(script)


@pytest.fixture
def page(browser, tmp_path):
    """The open page of a small model, with all heads of the last layer on."""
    maps = made_up_maps(SOURCE, TARGET)
    page = AttentionPage(browser, tmp_path / "page.html", page_of(maps))
    yield page
    assert page.errors() == []


@pytest.mark.slow
def test_every_picker_changes_what_is_drawn(page):
    pictures = [page.picture()]
    for choice in (
        "#heads label:nth-of-type(1)",
        "#heads label:nth-of-type(2)",
        "#layers label:nth-of-type(1)",
        "#kinds label:nth-of-type(2)",
        "#kinds label:nth-of-type(3)",
        "#heads label:nth-of-type(3)",
        "#heads button:first-of-type",
    ):
        (element,) = page.all(choice)
        element.click()
        pictures.append(page.picture())
    assert len(set(pictures)) == len(pictures)


@pytest.mark.slow
def test_the_columns_are_the_tokens_of_the_kind(page):
    both = page.all(".column button")
    assert [button.text for button in both] == SOURCE * 2
    page.all("#kinds label")[1].click()
    both = page.all(".column button")
    assert [b.text for b in both] == [*TARGET, "<s>", *TARGET[:-1]]
    assert "token read" in page.text("main")


@pytest.mark.slow
def test_layers_are_those_of_the_kind(browser, tmp_path):
    maps = made_up_maps(SOURCE, TARGET, num_layers=3)
    decoder_self = maps.decoder_self
    maps = maps._replace(
        decoder_self=decoder_self._replace(
            weights_NHLM=decoder_self.weights_NHLM[:2]
        )
    )
    page = AttentionPage(browser, tmp_path / "page.html", page_of(maps))

    def layers():
        return [label.text for label in page.all("#layers label")]

    assert layers() == ["0", "1", "2"]
    page.all("#kinds label")[1].click()
    assert layers() == ["0", "1"]
    (chosen,) = page.all("#layers input:checked")
    assert chosen.get_attribute("value") == "1"
    assert page.errors() == []


@pytest.mark.slow
def test_a_head_can_be_shown_alone_and_switched_off(page):
    everything = page.picture()
    boxes = page.all("#heads input")
    page.actions.double_click(page.all("#heads label")[1]).perform()
    assert [box.is_selected() for box in boxes] == [False, True, False]
    alone = page.picture()
    all_of_them, none = page.all("#heads button")
    none.click()
    assert not any(box.is_selected() for box in boxes)
    nothing = page.picture()
    page.all("#heads label")[1].click()
    assert page.picture() == alone
    all_of_them.click()
    assert page.picture() == everything
    assert len({everything, alone, nothing}) == 3


@pytest.mark.slow
def test_pointing_at_a_token_shows_its_lines_until_it_is_left(page):
    everything = page.picture()
    pictures = [everything]
    for place in (1, 2, len(SOURCE) + 1):  # Two queries and a key.
        page.hover(page.all(".column button")[place])
        pictures.append(page.picture())
        assert len(page.all(".column .active")) == 1
    assert "is attended to by" in page.text("#readout")
    page.hover(page.all("h1")[0])
    assert page.picture() == everything
    assert len(set(pictures)) == 4


@pytest.mark.slow
def test_squares_are_as_opaque_as_the_weights(page):
    page.all("#heads button")[1].click()
    page.all("#heads label")[2].click()
    weights_LM = made_up_maps(SOURCE, TARGET).encoder_self.weights_NHLM[1, 2]

    def opacities(x):
        """Returns those x pixels from the left or, if x < 0, from the right."""
        alphas = page.browser.execute_script(
            "const x = (arguments[0] + canvas.width) % canvas.width;"
            "const pen = canvas.getContext('2d');"
            f"return [...Array({len(SOURCE)}).keys()].map((n) =>"
            " pen.getImageData(x, (n + .5) * 22, 1, 1).data[3])",
            x,
        )
        return np.array(alphas) / 255

    def assert_squares(queries, keys):
        for x, expected in ((5, queries), (-6, keys)):
            np.testing.assert_allclose(opacities(x), expected, atol=0.005)

    nothing = np.zeros(len(SOURCE))
    assert_squares(nothing, weights_LM.mean(axis=0))
    page.hover(page.all(".column button")[1])
    assert_squares(nothing, weights_LM[1])
    page.hover(page.all(".column ~ .column button")[1])
    assert_squares(weights_LM[:, 1], nothing)


@pytest.mark.slow
def test_the_readout_has_the_largest_weights_of_a_token(page):
    page.all("#heads button")[1].click()
    page.all("#heads label")[2].click()
    page.hover(page.all(".column button")[3])
    weights_M = made_up_maps(SOURCE, TARGET).encoder_self.weights_NHLM[1, 2, 3]
    most = np.argsort(-weights_M)
    expected = ", ".join(f"{SOURCE[j]} {weights_M[j]:.3f}" for j in most)
    readout = re.sub("[\u2068\u2069]", "", page.text("#readout"))
    assert readout == f"s attends to: {expected}"


@pytest.mark.slow
def test_keys_go_where_the_pointer_goes(page):
    from selenium.webdriver.common.keys import Keys

    everything = page.picture()
    page.hover(page.all(".column button")[1])
    pointed = page.picture()
    page.hover(page.all("h1")[0])
    page.all("#heads button")[-1].click()
    page.all("#heads button")[0].click()
    page.press(Keys.TAB, Keys.TAB, Keys.ARROW_DOWN)
    assert page.picture() == pointed
    page.press(Keys.ARROW_RIGHT)
    assert (
        page.browser.switch_to.active_element
        == page.all(".column ~ .column button")[1]
    )
    page.press(Keys.ARROW_LEFT, Keys.END)
    assert "</s> attends to" in page.text("#readout").replace("\u2069", "")
    page.press(Keys.ESCAPE)
    assert page.picture() == everything


@pytest.mark.slow
def test_a_page_of_hostile_tokens_is_alive(browser, tmp_path):
    page = AttentionPage(
        browser,
        tmp_path / "page.html",
        page_of(made_up_maps(HOSTILE, HOSTILE, num_heads=16)),
    )
    assert browser.title.startswith("Attention: </script>")
    shown = browser.execute_script(
        "return [...document.querySelectorAll('.column')[0].children]"
        ".map((button) => button.textContent)"
    )
    assert shown == HOSTILE
    everything = page.picture()
    page.hover(page.all(".column button")[0])
    assert page.picture() != everything
    assert page.errors() == []


@pytest.mark.slow
def test_a_narrow_window_needs_no_scrolling_sideways(browser, tmp_path):
    tokens = ["Donaudampfschifffahrtsgesellschaft", *SOURCE] * 3
    maps = made_up_maps(tokens, tokens, num_heads=16)
    narrow = {"width": 360, "height": 700, "deviceScaleFactor": 2}
    browser.execute_cdp_cmd(
        "Emulation.setDeviceMetricsOverride", {**narrow, "mobile": True}
    )
    try:
        page = AttentionPage(browser, tmp_path / "page.html", page_of(maps))
        width, canvas = browser.execute_script(
            "return [document.documentElement.scrollWidth, canvas.clientWidth]"
        )
        assert width == 360
        assert canvas > 100
        assert page.errors() == []
    finally:
        browser.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})
