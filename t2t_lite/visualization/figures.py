"""Attention as pictures for papers: PNG files of 300 dots per inch."""

import importlib.util
import io
import warnings

import numpy as np
from absl import logging

from t2t_lite.errors import InputError
from t2t_lite.visualization.maps import KINDS
from t2t_lite.visualization.page import head_color

DPI = 300
# In inches, but for the font, in points.
_ROW, _GAP, _LINES, _SQUARE, _NUMBER, _FONT = 0.17, 0.06, 1.7, 0.08, 0.14, 8


def check_matplotlib():
    """Raises InputError if matplotlib, which draws, is not installed."""
    if importlib.util.find_spec("matplotlib") is None:
        raise InputError(
            "pictures need matplotlib: pip install -e '.[figures]'"
        )


def matrix_png(maps, selection):
    """Returns the PNG file of a heat map: a row each query, a column each key.

    Args:
        maps: AttentionMaps.
        selection: Selection; of several heads the mean is shown.

    Returns:
        bytes.
    """
    queries, keys, weights_HLM = _selected(maps, selection)
    weights_LM = weights_HLM.mean(axis=0)
    canvas = _Canvas()
    left = canvas.widest(queries) + 2 * _GAP + _ROW
    top = canvas.widest(keys) + 2 * _GAP + _ROW
    right, bottom = left + len(keys) * _ROW, top + len(queries) * _ROW
    names = KINDS[selection.kind]
    middle = (left + right) / 2, (top + bottom) / 2
    below = middle[1] + canvas.widest([names.query]) / 2
    canvas.resize(right + 0.55, max(bottom, below) + _GAP)
    for n, token in enumerate(queries):
        canvas.text(left - _GAP, top + (n + 0.5) * _ROW, token, ha="right")
    for n, token in enumerate(keys):
        x = left + (n + 0.5) * _ROW
        canvas.text(x, top - _GAP, token, ha="left", rotation=90)
    canvas.text(_ROW / 2, middle[1], names.query, rotation=90, color="0.4")
    canvas.text(middle[0], _ROW / 2, names.key, color="0.4")
    canvas.image(weights_LM, left, right, top, bottom)
    return canvas.png()


def lines_png(maps, selection):
    """Returns the PNG file of lines from queries to keys, as in the paper.

    A line is as opaque as the weight is large, and has the color of its head.
    If not all queries are selected, those that are stand on grey, and squares
    beside the keys show what each head gives to them on average.

    Args:
        maps: AttentionMaps.
        selection: Selection.

    Returns:
        bytes.

    Source: Figures 3 to 5.
    """
    queries, keys, weights_HLM = _selected(maps, selection)
    names, heads = KINDS[selection.kind], selection.heads
    has_squares = len(selection.queries) < len(queries)
    canvas = _Canvas()
    left = canvas.widest([*queries, names.query]) + 3 * _GAP
    right = left + max(_LINES, (len(heads) + 4) * _NUMBER)
    text = right + (len(heads) * _SQUARE + _GAP) * has_squares + _GAP
    rows = max(len(queries), len(keys)) + 1.7  # The first has the names.
    canvas.resize(text + canvas.widest([*keys, names.key]) + _GAP, rows * _ROW)
    y_of = (np.arange(int(rows)) + 2) * _ROW
    canvas.column(left - 2 * _GAP, queries, names.query, "right", y_of)
    canvas.column(text, keys, names.key, "left", y_of)
    if has_squares:
        canvas.mark(left - 2 * _GAP, selection.queries, y_of)
    if len(heads) > 1:
        canvas.legend((left + right) / 2, heads)
    for n, head in enumerate(heads):
        weights_QM = weights_HLM[n, selection.queries]
        ends = np.broadcast_arrays(
            *(left, y_of[selection.queries, None]),
            *(right, y_of[: len(keys)]),
        )
        canvas.lines(ends, head_color(head), weights_QM)
        if has_squares:
            x = right + _GAP + n * _SQUARE
            canvas.squares(x, y_of, head_color(head), weights_QM.mean(axis=0))
    return canvas.png()


def _selected(maps, selection):
    """Returns the query tokens, the key tokens, and weights_HLM of the heads.

    White space within tokens, which would break lines, becomes one space.
    """
    found = getattr(maps, selection.kind)
    queries, keys = (
        [" ".join(token.split()) or "\u2423" for token in tokens]
        for tokens in (found.query_tokens, found.key_tokens)
    )
    weights_HLM = found.weights_NHLM[selection.layer, selection.heads]
    return queries, keys, weights_HLM


class _Canvas:
    """A figure with coordinates in inches from its upper left corner."""

    def __init__(self):
        from matplotlib.backends.backend_agg import FigureCanvasAgg
        from matplotlib.figure import Figure

        self.figure = Figure(dpi=DPI)
        FigureCanvasAgg(self.figure)
        self.axes = self.figure.add_axes((0, 0, 1, 1))
        self.axes.axis("off")

    def widest(self, texts):
        """Returns the inches that the widest text takes."""
        artists = [self.text(0, 0, text) for text in texts]
        with warnings.catch_warnings(action="ignore"):  # `png` has them again.
            widths = [a.get_window_extent().width / DPI for a in artists]
        for artist in artists:
            artist.remove()
        return max(widths)

    def resize(self, width, height):
        """Makes the figure so many inches wide and high, in whole dots."""
        width, height = (np.ceil(n * DPI) / DPI for n in (width, height))
        self.figure.set_size_inches(width, height)
        self.axes.set(xlim=(0, width), ylim=(height, 0))

    def text(self, x, y, text, ha="center", **style):
        """Writes a text as it is: a dollar sign starts no formula."""
        style = {"fontsize": _FONT, "va": "center_baseline"} | style
        style |= {"ha": ha, "parse_math": False, "rotation_mode": "anchor"}
        return self.axes.text(x, y, text, **style)

    def column(self, x, tokens, name, ha, y_of):
        """Writes tokens below each other, and over them what they are."""
        self.text(x, 0.8 * _ROW, name, ha, color="0.4")
        for y, token in zip(y_of, tokens, strict=False):
            self.text(x, y, token, ha)

    def mark(self, right, rows, y_of):
        """Puts grey behind some rows of the left column."""
        for y in y_of[rows]:
            self.rectangle(_GAP, y, right - _GAP / 2, _ROW, "0.88", zorder=-1)

    def legend(self, middle, heads):
        """Writes the numbers of the heads in their colors."""
        size = {"fontsize": _FONT - 2}
        y, left = 0.8 * _ROW, middle - (len(heads) - 2) / 2 * _NUMBER
        self.text(left - _NUMBER, y, "heads", "right", color="0.4", **size)
        for n, head in enumerate(heads):
            bold = {"color": head_color(head), "fontweight": "bold"}
            self.text(left + n * _NUMBER, y, str(head), **bold, **size)

    def lines(self, ends, color, weights):
        """Draws lines from (x0, y0) to (x1, y1), each array of one shape."""
        from matplotlib.collections import LineCollection

        self.axes.add_collection(
            LineCollection(
                np.stack(ends, axis=-1).reshape(-1, 2, 2),
                colors=[(color, min(w, 1.0)) for w in weights.ravel()],
                linewidths=1.2,
            )
        )

    def squares(self, x, y_of, color, weights_M):
        """Draws a column of squares, x inches from the left to their left."""
        side = _SQUARE * 0.85
        for y, weight in zip(y_of, weights_M, strict=False):
            self.rectangle(x, y, side, side, (color, min(weight, 1.0)))

    def rectangle(self, x, middle, width, height, color, **style):
        from matplotlib.patches import Rectangle

        corner = x, middle - height / 2
        style |= {"color": color, "linewidth": 0}
        self.axes.add_patch(Rectangle(corner, width, height, **style))

    def image(self, weights_LM, left, right, top, bottom):
        """Draws a matrix into a box, and the scale of its colors beside it."""
        height, limits = self.axes.get_ylim()[0], self.axes.axis()
        image = self.axes.imshow(
            weights_LM,
            cmap="Blues",
            vmin=0,
            vmax=max(weights_LM.max(), 1e-6),
            extent=(left, right, bottom, top),
            aspect="auto",
            interpolation="nearest",
        )
        self.axes.axis(limits)
        width = self.axes.get_xlim()[1]
        box = (right + 0.12, height - bottom, 0.08, bottom - top)
        place = np.divide(box, (width, height, width, height))
        scale = self.figure.colorbar(image, cax=self.figure.add_axes(place))
        scale.ax.tick_params(labelsize=_FONT - 2, width=0.4, length=2)
        scale.outline.set_linewidth(0.4)

    def png(self):
        """Returns the bytes of the PNG file."""
        file = io.BytesIO()
        with warnings.catch_warnings(record=True, action="always") as caught:
            self.figure.savefig(file, format="png", metadata={"Software": None})
        for said in sorted({str(each.message) for each in caught}):
            logging.warning("matplotlib: %s", said)
        return file.getvalue()
