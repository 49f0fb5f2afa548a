"""SVG drawing of a model's graph, without a library."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from html import escape

from .layered_layout import Layout, layout_boxes

HEIGHT, STEP, MARGIN = 26, 54, 20  # of a box, from layer to layer, around the picture, in pixels
LETTER = 6.7  # the width of a letter of the font at 11 pixels, at most
COLOURS = {
    "input": ("#dbeafe", "#1d4ed8"),
    "output": ("#dcfce7", "#15803d"),
    "op": ("#f4f4f5", "#52525b"),
    "product": ("#fee2e2", "#b91c1c"),
    "missing": ("#fef08a", "#a16207"),
}


@dataclasses.dataclass(frozen=True)
class Box:
    """A node: text, tooltip, kind, and the boxes (by number) that it reads."""

    label: str
    title: str
    kind: str
    reads: tuple[int, ...] = ()


def draw_graph(boxes: Sequence[Box], title: str) -> str:
    """Return the drawing of topologically sorted boxes."""
    edges = [(source, number) for number, box in enumerate(boxes) for source in dict.fromkeys(box.reads)]
    places = layout_boxes([max(60.0, 18 + LETTER * len(box.label)) for box in boxes], edges)
    width, height = places.width + 2 * MARGIN, places.layers * STEP - (STEP - HEIGHT) + 2 * MARGIN
    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width:.0f} {height:.0f}" width="{width:.0f}" '
        f'height="{height:.0f}" font-family="DejaVu Sans Mono, Menlo, Consolas, monospace" font-size="11">',
        f"<title>{escape(title)}</title>",
        '<rect width="100%" height="100%" fill="white"/>',
        '<g fill="none" stroke="#a1a1aa" stroke-width="1.2">',
        *(f'<path d="{_draw_edge(places, path)}"/>' for path in places.paths),
        "</g>",
    ]
    for box, place in zip(boxes, places.places, strict=False):
        fill, line = COLOURS[box.kind]
        x, y = MARGIN + place.x, MARGIN + place.layer * STEP
        lines.append(
            f'<g><title>{escape(box.title)}</title><rect x="{x - place.width / 2:.1f}" y="{y}" rx="5" '
            f'width="{place.width:.1f}" height="{HEIGHT}" fill="{fill}" stroke="{line}"/>'
            f'<text x="{x:.1f}" y="{y + 17}" text-anchor="middle" fill="#18181b">{escape(box.label)}</text></g>'
        )
    return "\n".join([*lines, "</svg>", ""])


def _draw_edge(places: Layout, path: list[int]) -> str:
    """Return an edge from the bottom of its first box through dummy nodes to the top of its last."""
    points = [(MARGIN + places.places[number].x, MARGIN + places.places[number].layer * STEP) for number in path]
    x, y = points[0]
    text, y = f"M{x:.1f} {y + HEIGHT}", y + HEIGHT
    for number, (to_x, to_y) in enumerate(points[1:], 1):
        text += f"C{x:.1f} {(y + to_y) / 2:.1f} {to_x:.1f} {(y + to_y) / 2:.1f} {to_x:.1f} {to_y}"
        if number < len(points) - 1:
            text, to_y = f"{text}V{to_y + HEIGHT}", to_y + HEIGHT
        x, y = to_x, to_y
    return text
