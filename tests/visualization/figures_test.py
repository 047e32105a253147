"""Pictures for papers have the right size, and everything in its place."""

import importlib
import io
import sys

import numpy as np
import pytest
from tiny_attention import HOSTILE, made_up_maps

from t2t_lite.errors import InputError
from t2t_lite.visualization import maps as attention_maps
from t2t_lite.visualization import page as attention_page
from t2t_lite.visualization.figures import lines_png, matrix_png
from t2t_lite.visualization.maps import select

SOURCE, TARGET = [*"abcde", "</s>"], [*"fghijkl", "</s>"]
DRAW = pytest.mark.parametrize("draw", [matrix_png, lines_png])
INCH, ROW = 300, 0.17


def pixels(png):
    """Returns the picture as float [height, width, RGB]."""
    image = importlib.import_module("matplotlib.image")
    return image.imread(io.BytesIO(png))[..., :3]


def with_weights(maps, kind, weights_LM):
    """Returns the maps with the same weights in all layers and heads."""
    found = getattr(maps, kind)
    weights_NHLM = np.broadcast_to(weights_LM, found.weights_NHLM.shape)
    found = found._replace(weights_NHLM=weights_NHLM.astype(np.float32))
    return maps._replace(**{kind: found})


def one_hot(L, M, i, j):
    return np.eye(L)[i][:, None] * np.eye(M)[j]


@DRAW
def test_a_picture_has_300_dots_per_inch(draw):
    maps = made_up_maps(SOURCE, TARGET)
    png = draw(maps, select(maps, "encoder_decoder"))
    assert png.startswith(b"\x89PNG\r\n")
    start = png.index(b"pHYs") + 4
    x, y = (int.from_bytes(png[start + n :][:4], "big") for n in (0, 4))
    assert (x, y, png[start + 8]) == (11811, 11811, 1)  # Dots per meter.


def test_a_matrix_grows_by_a_cell_each_token():
    sizes = []
    for S, T in ((8, 8), (28, 48)):
        maps = made_up_maps(["x"] * S, ["y"] * T)
        selected = select(maps, "encoder_decoder")
        sizes.append(pixels(matrix_png(maps, selected)).shape[:2])
    grown = np.subtract(*sizes[::-1])
    np.testing.assert_allclose(
        grown, [40 * ROW * INCH, 20 * ROW * INCH], atol=1
    )


def test_lines_grow_by_a_row_each_token_of_the_longer_side():
    sizes = []
    for S, T in ((8, 8), (28, 48)):
        maps = made_up_maps(["x"] * S, ["y"] * T)
        selected = select(maps, "encoder_decoder")
        sizes.append(pixels(lines_png(maps, selected)).shape[:2])
    np.testing.assert_allclose(
        np.subtract(*sizes[::-1]), [40 * ROW * INCH, 0], atol=1
    )


def test_a_cell_is_as_dark_as_its_weight():
    L, M = len(TARGET), len(SOURCE)
    maps = with_weights(
        made_up_maps(SOURCE, TARGET),
        "encoder_decoder",
        one_hot(L, M, i=2, j=4) + 0.5 * one_hot(L, M, i=6, j=1),
    )
    picture = pixels(matrix_png(maps, select(maps, "encoder_decoder")))
    height, width, _ = picture.shape
    # The corner of the matrix: below it is a gap, right of it the color scale.
    bottom, right = height - 0.06 * INCH, width - 0.55 * INCH
    darkness = np.array(
        [
            [
                1
                - picture[
                    int(bottom - (L - i - 0.5) * ROW * INCH),
                    int(right - (M - j - 0.5) * ROW * INCH),
                ].mean()
                for j in range(M)
            ]
            for i in range(L)
        ]
    )
    assert np.unravel_index(darkness.argmax(), (L, M)) == (2, 4)
    assert 0.3 < darkness[6, 1] < 0.8 * darkness[2, 4]
    darkness[[2, 6], [4, 1]] = 0
    assert darkness.max() < 0.05


def is_color(picture, head):
    """Returns bool [height, width]: where the picture has a head's color."""
    color = attention_page.head_color(head)
    rgb = [int(color[n : n + 2], 16) / 255 for n in (1, 3, 5)]
    return np.abs(picture - rgb).max(axis=-1) < 0.02


def test_lines_have_the_color_of_their_head():
    maps = made_up_maps(SOURCE, SOURCE)
    maps = with_weights(maps, "encoder_self", np.eye(len(SOURCE)))
    for head in range(3):
        picture = pixels(
            lines_png(maps, select(maps, "encoder_self", layer=0, heads=[head]))
        )
        counts = [is_color(picture, other).sum() for other in range(3)]
        # A line is 1.2 points wide and 1.7 inches long.
        expected = len(SOURCE) * (1.2 / 72 * INCH) * (1.7 * INCH)
        assert 0.6 * expected < counts[head] < 1.2 * expected
        assert sum(counts) == counts[head]


def test_a_line_goes_from_its_query_to_its_key():
    L, M = len(TARGET), len(SOURCE)
    maps = with_weights(
        made_up_maps(SOURCE, TARGET), "encoder_decoder", one_hot(L, M, i=6, j=1)
    )
    selected = select(maps, "encoder_decoder", layer=0, heads=[0])
    picture = pixels(lines_png(maps, selected))
    ys, xs = np.nonzero(is_color(picture, 0))
    rows = [ys[xs < xs.min() + 20].mean(), ys[xs > xs.max() - 20].mean()]
    np.testing.assert_allclose(
        rows, [(6 + 2) * ROW * INCH, (1 + 2) * ROW * INCH], atol=10
    )


def test_only_the_lines_of_selected_tokens_are_drawn():
    maps = made_up_maps(SOURCE, SOURCE)
    maps = with_weights(maps, "encoder_self", np.eye(len(SOURCE)))
    selected = select(maps, "encoder_self", layer=0, heads=[0], token="c")
    picture = pixels(lines_png(maps, selected))
    ys, _ = np.nonzero(is_color(picture, 0))
    middle = (SOURCE.index("c") + 2) * ROW * INCH
    assert ys.size
    assert np.abs(ys - middle).max() < ROW * INCH / 2
    assert (np.abs(picture - 0.88).max(axis=-1) < 0.01).sum() > 1000  # Gray.


@DRAW
def test_a_picture_is_of_the_layer_and_heads(draw):
    maps = made_up_maps(SOURCE, TARGET)
    weights_NHLM = maps.encoder_decoder.weights_NHLM
    for layer, head in ((0, 1), (1, 1), (1, 2)):
        selected = select(maps, "encoder_decoder", layer=layer, heads=[head])
        alone = with_weights(maps, selected.kind, weights_NHLM[layer, head])
        assert draw(maps, selected) == draw(alone, selected)


def test_a_matrix_of_several_heads_is_their_mean():
    maps = made_up_maps(SOURCE, TARGET)
    selected = select(maps, "encoder_decoder", layer=1, heads=[0, 2])
    weights_HLM = maps.encoder_decoder.weights_NHLM[1, [0, 2]]
    mean = with_weights(maps, selected.kind, weights_HLM.mean(axis=0))
    found, expected = (
        pixels(matrix_png(some, selected)) for some in (maps, mean)
    )
    np.testing.assert_allclose(found, expected, atol=2 / 255)


@DRAW
@pytest.mark.parametrize("tokens", [["a"], ["a", "W" * 40], ["g"] * 30])
@pytest.mark.parametrize("kind", attention_maps.KINDS)
def test_nothing_is_cut_off_at_the_edges(draw, tokens, kind):
    maps = made_up_maps(tokens, tokens[::-1])
    picture = pixels(draw(maps, select(maps, kind)))
    for edge in (picture[0], picture[-1], picture[:, 0], picture[:, -1]):
        np.testing.assert_array_equal(edge, 1)
    assert picture.min() < 0.5


@DRAW
def test_any_text_is_drawn_as_it_is(draw):
    maps = made_up_maps([*HOSTILE, "$\\frac$", "\x00"], TARGET)
    assert draw(maps, select(maps, "encoder_decoder"))


@DRAW
def test_a_character_that_the_font_lacks_is_told(draw, caplog):
    maps = made_up_maps(["🙂", "a"], TARGET)
    draw(maps, select(maps, "encoder_decoder"))
    assert "SLIGHTLY SMILING FACE" in caplog.text
    assert len(caplog.records) == 1


@DRAW
def test_the_same_maps_give_the_same_bytes(draw):
    maps = made_up_maps(SOURCE, TARGET)
    selected = select(maps, "decoder_self")
    assert draw(maps, selected) == draw(maps, selected)


@DRAW
def test_without_matplotlib_it_says_what_to_install(draw, monkeypatch):
    maps = made_up_maps(SOURCE, TARGET)
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(InputError, match=r"pip install -e '.\[figures\]'"):
        draw(maps, select(maps, "decoder_self"))
