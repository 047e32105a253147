"""A page to explore attention with: one HTML file that needs nothing else."""

import html
import json
import pathlib
import re
from typing import Any

import numpy as np

from t2t_lite.visualization.maps import (
    KINDS,
    WORDS_CAPTION,
    AttentionMaps,
    Selection,
)

# One for each head; beyond 16 heads they repeat.
_COLORS = [
    "#1f77b4",
    "#ff7f0e",
    "#2ca02c",
    "#d62728",
    "#9467bd",
    "#8c564b",
    "#e377c2",
    "#5f6b7a",
    "#a3a500",
    "#00a9b8",
    "#16327a",
    "#f2b701",
    "#0b6b3a",
    "#ff4fa3",
    "#5b1a8b",
    "#b07aff",
]
_TEMPLATE = pathlib.Path(__file__).with_name("page.html")
_UNITS = 1000  # Weights are written in thousandths.


def head_color(head: int) -> str:
    """Returns the color of a head, as "#rrggbb"."""
    return _COLORS[head % len(_COLORS)]


def render_page(maps: AttentionMaps, selection: Selection) -> str:
    """Returns the HTML of a page that shows all of the maps.

    It asks the network for nothing, and forbids the browser to. Whatever the
    tokens are, they are shown as text.

    Args:
        maps: AttentionMaps.
        selection: Selection, what the page shows first.
    """
    data = {
        "units": _UNITS,
        "kinds": [_kind_data(maps, kind) for kind in KINDS],
        "kind": list(KINDS).index(selection.kind),
        "layer": selection.layer,
        "heads": selection.heads,
        "colors": [
            head_color(head)
            for head in range(maps.encoder_self.weights_NHLM.shape[1])
        ],
    }
    values = {
        "source": html.escape(maps.source),
        "target": html.escape(maps.target),
        # Inside <script>, only "<" could end the text.
        "data": json.dumps(data, separators=(",", ":")).replace("<", r"\u003c"),
    }
    template = _TEMPLATE.read_text("utf-8")
    # In one pass, so that nothing in a value is taken for a name.
    return re.sub(r"\{\{(\w+)\}\}", lambda name: values[name[1]], template)


def _kind_data(maps: AttentionMaps, kind: str) -> dict[str, Any]:
    """Returns what the page's script knows about one kind of attention."""
    names, attention_map = KINDS[kind], getattr(maps, kind)
    weights_NHLM = np.rint(attention_map.weights_NHLM * _UNITS).astype(int)
    N, H, L, M = weights_NHLM.shape
    caption = names.caption
    if maps.words_joined:
        caption += WORDS_CAPTION + names.words_caption
    return {
        "title": names.title,
        "caption": caption,
        "roles": [names.query, names.key],
        "tokens": [attention_map.query_tokens, attention_map.key_tokens],
        "weights": weights_NHLM.reshape(N, H, L * M).tolist(),
    }
