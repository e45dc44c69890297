"""A picture of where the time of a step goes, as SVG: a bar for each batch, cut into its parts.

Owns what is drawn where. Every part is named beside its bar with its time and share, so that no
fact is told by colour alone; parts that are too small for a name of their own still have a line.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Protocol

from benchmarks.svg import document, rect, text

WIDTH, MARGIN, TOP = 760, 28, 104
BAR_TOP, BAR_HEIGHT, BAR_WIDTH = 30, 34, WIDTH - 2 * MARGIN
LINE_STEP, COLUMNS = 20, 3
SWATCH = 11
KERNEL_STYLES = ("own0", "own2", "own1", "shared")


class Profile(Protocol):
    """What is drawn of one step."""

    @property
    def batch_size(self) -> int: ...
    @property
    def context(self) -> int: ...
    @property
    def seconds(self) -> Mapping[str, float]: ...
    @property
    def total_s(self) -> float: ...


def draw_steps(profiles: Sequence[Profile], kernels: Sequence[str], others: Sequence[str]) -> str:
    """Return the picture; `kernels` and `others` are the names of the parts, in their order."""
    styles = {name: KERNEL_STYLES[i % len(KERNEL_STYLES)] for i, name in enumerate(kernels)}
    styles |= {name: "copied" for name in others}
    num_lines = -(-len(styles) // COLUMNS)
    block_height = BAR_TOP + BAR_HEIGHT + 14 + num_lines * LINE_STEP + 22
    body = [
        text(MARGIN, 40, "Where the time of a decode step goes", "title"),
        text(MARGIN, 64, "Default model in bfloat16; red is what is not spent in kernels.", "note"),
    ]
    for i, profile in enumerate(profiles):
        body += _block(profile, styles, TOP + i * block_height)
    height = TOP + len(profiles) * block_height
    return document("Time of a step", "; ".join(map(_sentence, profiles)), (WIDTH, height), body)


def _block(profile: Profile, styles: Mapping[str, str], top: float) -> Iterator[str]:
    yield text(MARGIN, top + 16, _sentence(profile), "head")
    left = float(MARGIN)
    for name, style in styles.items():
        width = BAR_WIDTH * profile.seconds[name] / profile.total_s
        yield rect(left, top + BAR_TOP, width, BAR_HEIGHT, f"{style} part")
        left += width
    for i, (name, style) in enumerate(styles.items()):
        column, line = i % COLUMNS, i // COLUMNS
        x = MARGIN + column * BAR_WIDTH / COLUMNS
        y = top + BAR_TOP + BAR_HEIGHT + 24 + line * LINE_STEP
        yield rect(x, y - SWATCH + 1, SWATCH, SWATCH, style)
        share = profile.seconds[name] / profile.total_s
        label = f"{name}  {profile.seconds[name] * 1e3:.2f} ms, {share:.1%}"
        yield text(x + SWATCH + 7, y, label, "note")


def _sentence(profile: Profile) -> str:
    requests = "1 request" if profile.batch_size == 1 else f"{profile.batch_size} requests"
    return f"{requests} at {profile.context} tokens: {profile.total_s * 1e3:.1f} ms a step"
