"""The life of a run as an SVG picture, drawn from the table of transitions."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from rungent._lifecycle.statuses import TRANSITIONS
from rungent.records import ACTIVE, RunStatus

__all__ = ["lifecycle_diagram"]


class Arrow(NamedTuple):
    """How one transition is drawn: an SVG path, and where its label stands."""

    path: str
    x: int
    y: int
    anchor: str = "middle"


WIDTH, HEIGHT = 150, 44
CORNERS = {
    RunStatus.QUEUED: (100, 30),
    RunStatus.RUNNING: (330, 110),
    RunStatus.WAITING_INPUT: (630, 30),
    RunStatus.WAITING_EXTERNAL: (630, 190),
    RunStatus.COMPLETED: (100, 330),
    RunStatus.FAILED: (330, 330),
    RunStatus.CANCELLED: (630, 330),
}
ARROWS: Mapping[tuple[RunStatus | None, RunStatus], Arrow] = {
    (None, RunStatus.QUEUED): Arrow("M35 126 L100 66", 92, 22),
    (None, RunStatus.RUNNING): Arrow("M38 132 L330 132", 215, 150),
    (RunStatus.QUEUED, RunStatus.RUNNING): Arrow("M250 52 Q330 52 366 110", 322, 50),
    (RunStatus.QUEUED, RunStatus.CANCELLED): Arrow(
        "M100 44 L72 44 L72 404 L705 404 L705 374", 390, 422
    ),
    (RunStatus.RUNNING, RunStatus.WAITING_INPUT): Arrow("M440 110 Q500 42 630 42", 528, 38),
    (RunStatus.WAITING_INPUT, RunStatus.RUNNING): Arrow("M630 64 Q560 72 480 120", 590, 92),
    (RunStatus.RUNNING, RunStatus.WAITING_EXTERNAL): Arrow("M480 144 Q570 160 630 202", 590, 155),
    (RunStatus.WAITING_EXTERNAL, RunStatus.RUNNING): Arrow("M630 224 Q500 224 440 154", 592, 242),
    (RunStatus.RUNNING, RunStatus.COMPLETED): Arrow("M365 154 L195 330", 258, 250, "end"),
    (RunStatus.RUNNING, RunStatus.FAILED): Arrow("M400 154 L400 330", 392, 280, "end"),
    (RunStatus.RUNNING, RunStatus.CANCELLED): Arrow("M422 154 L650 330", 562, 282, "end"),
    (RunStatus.WAITING_INPUT, RunStatus.CANCELLED): Arrow(
        "M780 52 L812 52 L812 352 L780 352", 806, 272, "end"
    ),
    (RunStatus.WAITING_EXTERNAL, RunStatus.CANCELLED): Arrow(
        "M670 234 L670 330", 678, 308, "start"
    ),
}
HEAD = (
    '<marker id="head" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="8" markerHeight="8" '
    'orient="auto"><path class="head" d="M0 0 L8 4 L0 8 z"/></marker>'
)
STYLE = """\
text { font: 14px system-ui, sans-serif; fill: #1b1f24; }
.label { font-size: 12px; fill: #57606a; paint-order: stroke; stroke: #fff; stroke-width: 4px; }
.box { fill: #fff; stroke: #57606a; stroke-width: 1.5; }
.terminal { fill: #eef1f4; }
.arrow { fill: none; stroke: #57606a; stroke-width: 1.3; marker-end: url(#head); }
.head, .dot { fill: #57606a; }
@media (prefers-color-scheme: dark) {
  text { fill: #e6edf3; }
  .label { fill: #9da7b1; stroke: #131416; }
  .box { fill: #161b22; stroke: #9da7b1; }
  .terminal { fill: #2a313a; }
  .arrow { stroke: #9da7b1; }
  .head, .dot { fill: #9da7b1; }
}
"""


def lifecycle_diagram() -> str:
    """The picture. A transition without a drawing, or a drawing without one, is a ValueError."""
    if set(ARROWS) != set(TRANSITIONS) or set(CORNERS) != set(RunStatus):
        raise ValueError("the drawing and the table of transitions differ")
    lines = [
        '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 830 434" role="img">',
        "<title>The states of a run</title>",
        f"<desc>{_described()}</desc>",
        f"<style>\n{STYLE}</style>",
        HEAD,
        '<circle class="dot" cx="30" cy="132" r="7"/>',
        *(f'<path class="arrow" d="{arrow.path}"/>' for arrow in ARROWS.values()),
        *map(_box, CORNERS),
        *(_label(ARROWS[pair], cause) for pair, cause in TRANSITIONS.items()),
        "</svg>",
    ]
    return "\n".join(lines) + "\n"


def _described() -> str:
    return " ".join(
        f"{'start' if before is None else before.value} to {after.value}: {cause}."
        for (before, after), cause in TRANSITIONS.items()
    )


def _box(status: RunStatus) -> str:
    x, y = CORNERS[status]
    kind = "box" if status in ACTIVE else "box terminal"
    return (
        f'<rect class="{kind}" x="{x}" y="{y}" width="{WIDTH}" height="{HEIGHT}" rx="8"/>'
        f'<text x="{x + WIDTH // 2}" y="{y + 27}" text-anchor="middle">{status.value}</text>'
    )


def _label(arrow: Arrow, cause: str) -> str:
    place = f'x="{arrow.x}" y="{arrow.y}" text-anchor="{arrow.anchor}"'
    return f'<text class="label" {place}>{cause}</text>'
