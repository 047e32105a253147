"""Attention as pictures for papers: PNG files of 300 dots per inch.

Drawing needs matplotlib, an extra.
"""

import io
import warnings
from typing import Any

import numpy as np
from absl import logging

from t2t_lite import files
from t2t_lite.errors import require_extra
from t2t_lite.visualization.maps import KINDS, AttentionMaps, Selection
from t2t_lite.visualization.page import head_color

DPI = 300
# In inches, except for the font, which is in points.
_ROW, _GAP, _LINES, _SQUARE, _NUMBER, _FONT = 0.17, 0.06, 1.7, 0.08, 0.14, 8


def write_pictures(
    prefix: str, maps: AttentionMaps, selection: Selection
) -> None:
    """Writes PREFIX-matrix.png and PREFIX-lines.png.

    Args:
        prefix: of the paths.
        maps: AttentionMaps.
        selection: Selection.

    Raises:
        InputError: matplotlib is not installed, or a file cannot be written.
    """
    for name, draw in (("matrix", matrix_png), ("lines", lines_png)):
        with files.output_file(f"{prefix}-{name}.png", mode="wb") as file:
            file.write(draw(maps, selection))


def matrix_png(maps: AttentionMaps, selection: Selection) -> bytes:
    """Returns a heat map as a PNG: a row per query, a column per key.

    Args:
        maps: AttentionMaps.
        selection: Selection; the mean of several heads is shown.

    Raises:
        InputError: matplotlib is not installed.
    """
    queries, keys, weights_HLM = _selected(maps, selection)
    weights_LM = weights_HLM.mean(axis=0)
    canvas = _Canvas()
    left = canvas.max_width(queries) + 2 * _GAP + _ROW
    top = canvas.max_width(keys) + 2 * _GAP + _ROW
    right, bottom = left + len(keys) * _ROW, top + len(queries) * _ROW
    names = KINDS[selection.kind]
    middle_x, middle_y = (left + right) / 2, (top + bottom) / 2
    below = middle_y + canvas.max_width([names.query]) / 2
    canvas.resize(right + 0.55, max(bottom, below) + _GAP)
    for n, token in enumerate(queries):
        canvas.text(left - _GAP, top + (n + 0.5) * _ROW, token, ha="right")
    for n, token in enumerate(keys):
        x = left + (n + 0.5) * _ROW
        canvas.text(x, top - _GAP, token, ha="left", rotation=90)
    canvas.text(_ROW / 2, middle_y, names.query, rotation=90, color="0.4")
    canvas.text(middle_x, _ROW / 2, names.key, color="0.4")
    canvas.image(weights_LM, left=left, right=right, top=top, bottom=bottom)
    return canvas.png()


def lines_png(maps: AttentionMaps, selection: Selection) -> bytes:
    """Returns lines from queries to keys, as in the paper, as a PNG.

    A line is as opaque as the weight is large, and has the color of its head.
    If not all queries are selected, those that are have a gray background, and
    squares next to the keys show what each head gives to them on average.

    Args:
        maps: AttentionMaps.
        selection: Selection.

    Raises:
        InputError: matplotlib is not installed.

    Source: Figures 3 to 5.
    """
    queries, keys, weights_HLM = _selected(maps, selection)
    names, heads = KINDS[selection.kind], selection.heads
    has_squares = len(selection.queries) < len(queries)
    canvas = _Canvas()
    left = canvas.max_width([*queries, names.query]) + 3 * _GAP
    right = left + max(_LINES, (len(heads) + 4) * _NUMBER)
    squares = len(heads) * _SQUARE + _GAP if has_squares else 0
    text = right + squares + _GAP
    rows = max(len(queries), len(keys)) + 1.7  # The first has the names.
    canvas.resize(
        text + canvas.max_width([*keys, names.key]) + _GAP, rows * _ROW
    )
    row_centers = (np.arange(int(rows)) + 2) * _ROW
    canvas.column(
        left - 2 * _GAP,
        queries,
        name=names.query,
        ha="right",
        row_centers=row_centers,
    )
    canvas.column(
        text, keys, name=names.key, ha="left", row_centers=row_centers
    )
    if has_squares:
        canvas.mark(left - 2 * _GAP, selection.queries, row_centers)
    if len(heads) > 1:
        canvas.legend((left + right) / 2, heads)
    for n, head in enumerate(heads):
        weights_QM = weights_HLM[n, selection.queries]
        ends = np.broadcast_arrays(
            left,
            row_centers[selection.queries, None],
            right,
            row_centers[: len(keys)],
        )
        canvas.lines(ends, head_color(head), weights_QM)
        if has_squares:
            x = right + _GAP + n * _SQUARE
            canvas.squares(
                x,
                row_centers,
                color=head_color(head),
                weights_M=weights_QM.mean(axis=0),
            )
    return canvas.png()


def _selected(
    maps: AttentionMaps, selection: Selection
) -> tuple[list[str], list[str], np.ndarray]:
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
        require_extra("matplotlib", "figures")
        from matplotlib.backends.backend_agg import FigureCanvasAgg
        from matplotlib.figure import Figure

        self.figure = Figure(dpi=DPI)
        FigureCanvasAgg(self.figure)
        self.axes = self.figure.add_axes((0, 0, 1, 1))
        self.axes.axis("off")

    def max_width(self, texts: list[str]) -> float:
        """Returns the width of the widest text in inches."""
        artists = [self.text(0, 0, text) for text in texts]
        with warnings.catch_warnings(action="ignore"):  # `png` logs them.
            widths = [a.get_window_extent().width / DPI for a in artists]
        for artist in artists:
            artist.remove()
        return max(widths)

    def resize(self, width: float, height: float) -> None:
        """Sets the size in inches, rounded up to whole dots."""
        width, height = (np.ceil(n * DPI) / DPI for n in (width, height))
        self.figure.set_size_inches(width, height)
        self.axes.set(xlim=(0, width), ylim=(height, 0))

    def text(
        self, x: float, y: float, text: str, ha: str = "center", **style: Any
    ) -> Any:
        """Writes a text as it is: a dollar sign does not start a formula."""
        style = {"fontsize": _FONT, "va": "center_baseline"} | style
        style |= {"ha": ha, "parse_math": False, "rotation_mode": "anchor"}
        return self.axes.text(x, y, text, **style)

    def column(
        self,
        x: float,
        tokens: list[str],
        *,
        name: str,
        ha: str,
        row_centers: np.ndarray,
    ) -> None:
        """Writes tokens one below another, and their name above them."""
        self.text(x, 0.8 * _ROW, name, ha=ha, color="0.4")
        for y, token in zip(row_centers, tokens, strict=False):
            self.text(x, y, token, ha=ha)

    def mark(
        self, right: float, rows: list[int], row_centers: np.ndarray
    ) -> None:
        """Puts gray behind some rows of the left column."""
        for y in row_centers[rows]:
            self.rectangle(
                _GAP,
                y,
                width=right - _GAP / 2,
                height=_ROW,
                color="0.88",
                zorder=-1,
            )

    def legend(self, middle: float, heads: list[int]) -> None:
        """Writes the numbers of the heads in their colors."""
        size = {"fontsize": _FONT - 2}
        y, left = 0.8 * _ROW, middle - (len(heads) - 2) / 2 * _NUMBER
        self.text(left - _NUMBER, y, "heads", ha="right", color="0.4", **size)
        for n, head in enumerate(heads):
            bold = {"color": head_color(head), "fontweight": "bold"}
            self.text(left + n * _NUMBER, y, str(head), **bold, **size)

    def lines(
        self, ends: list[np.ndarray], color: str, weights: np.ndarray
    ) -> None:
        """Draws lines; `ends` are x0, y0, x1 and y1, arrays of one shape."""
        from matplotlib.collections import LineCollection

        self.axes.add_collection(
            LineCollection(
                np.stack(ends, axis=-1).reshape(-1, 2, 2),
                colors=[(color, min(w, 1.0)) for w in weights.ravel()],
                linewidths=1.2,
            )
        )

    def squares(
        self,
        x: float,
        row_centers: np.ndarray,
        *,
        color: str,
        weights_M: np.ndarray,
    ) -> None:
        """Draws a column of squares whose left sides are at x."""
        side = _SQUARE * 0.85
        for y, weight in zip(row_centers, weights_M, strict=False):
            self.rectangle(
                x,
                y,
                width=side,
                height=side,
                color=(color, min(weight, 1.0)),
            )

    def rectangle(
        self,
        x: float,
        middle: float,
        *,
        width: float,
        height: float,
        **style: Any,
    ) -> None:
        """Draws a rectangle whose left side is at x."""
        from matplotlib.patches import Rectangle

        corner = x, middle - height / 2
        self.axes.add_patch(
            Rectangle(corner, width, height, linewidth=0, **style)
        )

    def image(
        self,
        weights_LM: np.ndarray,
        *,
        left: float,
        right: float,
        top: float,
        bottom: float,
    ) -> None:
        """Draws a matrix into a box, and its color scale next to it."""
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

    def png(self) -> bytes:
        """Returns the figure as a PNG."""
        file = io.BytesIO()
        with warnings.catch_warnings(record=True, action="always") as caught:
            self.figure.savefig(file, format="png", metadata={"Software": None})
        for message in sorted({str(each.message) for each in caught}):
            logging.warning("matplotlib: %s", message)
        return file.getvalue()
