"""The elements of the pictures, and their looks.

Owns the style sheet. Text stays text, and colours follow the reader's light or dark theme on a card
of their own, so that a picture can be read on any page. Knows nothing of what a picture shows.
"""

from collections.abc import Iterable
from html import escape

STYLE = """
text { font-family: ui-sans-serif, system-ui, "Segoe UI", Helvetica, Arial, sans-serif; }
.title { font-size: 18px; font-weight: 600; } .head { font-size: 14px; font-weight: 600; }
.note { font-size: 12.5px; } .name { font-size: 16px; font-weight: 700; }
.number { font-size: 11px; text-anchor: middle; } .holders { font-size: 12px; font-weight: 700; }
.holders, .mid { text-anchor: middle; }
.frame, .bracket, .copy { fill: none; } .part { stroke: #ffffff; } .copy { stroke-width: 2; }
.card { fill: #ffffff; stroke: #d0d7de; } text { fill: #1f2328; } .note { fill: #59636e; }
.empty { fill: #f3f4f6; } .frame { stroke: #8c959f; } .bracket { stroke: #8250df; }
.shared { fill: #dcc8ff; } .own0 { fill: #b3d7ff; }
.own1 { fill: #ffd09b; } .own2 { fill: #aee5b5; }
.copy { stroke: #cf222e; } .tip, .copied { fill: #cf222e; } text.red { fill: #b3121f; }
@media (prefers-color-scheme: dark) {
.card { fill: #12161c; stroke: #3d444d; } text { fill: #f0f6fc; } .note { fill: #a9b3be; }
.empty { fill: #262c36; } .frame { stroke: #7d8590; } .bracket { stroke: #b794ff; }
.shared { fill: #5d3fb0; } .own0 { fill: #1d559c; }
.own1 { fill: #8f4f10; } .own2 { fill: #216e39; }
.copy { stroke: #ff7b72; } .tip, .copied { fill: #ff7b72; } text.red { fill: #ff9a92; }
}
"""
ARROW_HEAD = (
    '<defs><marker id="tip" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="6" markerHeight="6" '
    'orient="auto"><path class="tip" d="M0 0 L8 4 L0 8 z"/></marker></defs>'
)


def document(title: str, description: str, size: tuple[float, float], body: Iterable[str]) -> str:
    """Return an SVG file: a card of `size` with the elements of `body` on it."""
    width, height = size
    return "\n".join(
        [
            f'<svg xmlns="http://www.w3.org/2000/svg" role="img" '
            f'viewBox="0 0 {width:g} {height:g}" width="{width:g}" height="{height:g}">',
            f"<title>{escape(title)}</title>",
            f"<desc>{escape(description)}</desc>",
            f"<style>{STYLE}</style>",
            ARROW_HEAD,
            rect(0.5, 0.5, width - 1, height - 1, "card", radius=10),
            *body,
            "</svg>\n",
        ]
    )


def rect(
    left: float, top: float, width: float, height: float, style: str, *, radius: int = 0
) -> str:
    size = f'x="{left:g}" y="{top:g}" width="{width:g}" height="{height:g}" rx="{radius}"'
    return f'<rect class="{style}" {size}/>'


def text(x: float, y: float, content: str, style: str) -> str:
    return f'<text class="{style}" x="{x:g}" y="{y:g}">{escape(content)}</text>'


def arrow(x1: float, y1: float, x2: float, y2: float) -> str:
    """Return a line that leaves downwards, turns just above its end and arrives from above."""
    path = f"M{x1:g} {y1:g} V{y2 - 11:g} H{x2:g} V{y2:g}"
    return f'<path class="copy" d="{path}" marker-end="url(#tip)"/>'
