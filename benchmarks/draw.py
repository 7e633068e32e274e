"""Small charts as SVG files that stand alone, light or dark, with nothing loaded (pure)."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from html import escape
from itertools import pairwise

WIDTH = 760
_STYLE = """
:root { --text: #1c1e21; --soft: #5f6670; --line: #d6dae0; --a: #2f5fb3; --b: #b3372f;
  --c: #1a7f52; --d: #8a5a00; --rest: #9aa3ad; --paper: #fff; }
@media (prefers-color-scheme: dark) { :root { --text: #e6e8eb; --soft: #9aa3ad; --line: #3a4048;
  --a: #7aa7f0; --b: #f0776c; --c: #4cc38a; --d: #e0b050; --rest: #6b7480;
  --paper: #16181b; } }
text { font: 12px system-ui, sans-serif; fill: var(--text); }
.soft { fill: var(--soft); }
"""
# Never by colour alone: the dashes differ too.
_STROKES = (("--a", ""), ("--b", "6 4"), ("--c", "2 3"), ("--d", "9 3 2 3"))
_ROW, _LABELS, _VALUES, _NOTES = 26, 230, 80, 110
_LEFT, _RIGHT, _TOP, _BOTTOM = 56, 150, 34, 44


@dataclass(frozen=True, slots=True)
class Bar:
    """One bar; the marked ones are ours."""

    label: str
    value: float
    marked: bool = False
    note: str = ""


@dataclass(frozen=True, slots=True)
class Series:
    """One line of a chart: points from left to right."""

    label: str
    points: Sequence[tuple[float, float]]


def draw_bars(title: str, bars: Sequence[Bar], *, unit: str = "") -> str:
    """Horizontal bars from 0, each with its value."""
    room = WIDTH - _LABELS - _VALUES - (_NOTES if any(bar.note for bar in bars) else 0)
    largest = max(bar.value for bar in bars) or 1.0
    parts = [_text(0, 16, title, classes="soft")]
    for place, bar in enumerate(bars):
        top = 28 + place * _ROW
        width = bar.value / largest * room
        colour = "--a" if bar.marked else "--rest"
        said = f"{bar.value:,.3g}{unit}{f' {bar.note}' if bar.note else ''}"
        parts += [
            _text(_LABELS - 10, top + 14, bar.label, anchor="end"),
            f'<rect x="{_LABELS}" y="{top}" width="{width:.1f}" height="{_ROW - 8}" rx="2" '
            f'fill="var({colour})"/>',
            _text(_LABELS + width + 6, top + 14, said),
        ]
    return _figure(28 + len(bars) * _ROW + 4, title, parts)


def draw_lines(
    title: str,
    series: Sequence[Series],
    *,
    across: str,
    up: str,
    logarithmic: bool = False,
) -> str:
    """Lines over the same axis, each labelled at its end."""
    height = 320
    xs = [x for each in series for x, _ in each.points]
    ys = [y for each in series for _, y in each.points]
    right, bottom = WIDTH - _RIGHT, height - _BOTTOM
    low, high = _choose_range(ys, logarithmic=logarithmic)
    place_x = _make_scale(min(xs), max(xs), right - _LEFT, logarithmic=logarithmic)
    place_y = _make_scale(low, high, bottom - _TOP, logarithmic=logarithmic)

    def place(point: tuple[float, float]) -> tuple[float, float]:
        return _LEFT + place_x(point[0]), bottom - place_y(point[1])

    parts = []
    for tick in _choose_ticks(low, high, logarithmic=logarithmic):
        y = bottom - place_y(tick)
        parts.append(
            f'<line x1="{_LEFT}" y1="{y:.1f}" x2="{right}" y2="{y:.1f}" stroke="var(--line)"/>'
        )
        parts.append(_text(_LEFT - 6, y + 4, f"{tick:,.4g}", anchor="end", classes="soft"))
    parts += [
        _text(place((x, low))[0], bottom + 17, f"{x:,.0f}", anchor="middle")
        for x in sorted(set(xs))
    ]
    parts.append(_text(right, height - 6, across, anchor="end", classes="soft"))
    parts.append(_text(0, 12, up, classes="soft"))
    ends = _spread([place(each.points[-1])[1] for each in series])
    for number, each in enumerate(series):
        parts.append(_draw_series(each, number, place, end=ends[number]))
    return _figure(height, title, parts)


def _draw_series(
    series: Series,
    number: int,
    place: Callable[[tuple[float, float]], tuple[float, float]],
    *,
    end: float,
) -> str:
    colour, dash = _STROKES[number % len(_STROKES)]
    points = [place(point) for point in series.points]
    path = " ".join(f"{x:.1f},{y:.1f}" for x, y in points)
    dots = "".join(
        f'<circle cx="{x:.1f}" cy="{y:.1f}" r="3.5" fill="var({colour})"/>' for x, y in points
    )
    label = _text(points[-1][0] + 10, end + 4, series.label)
    return (
        f'<polyline points="{path}" fill="none" stroke="var({colour})" stroke-width="2" '
        f'stroke-dasharray="{dash}"/>{dots}{label}'
    )


def _make_scale(
    low: float, high: float, room: float, *, logarithmic: bool
) -> Callable[[float], float]:
    """From a value to its distance from the axis."""
    measure: Callable[[float], float] = math.log10 if logarithmic else float
    span = (measure(high) - measure(low)) or 1.0
    return lambda value: (measure(value) - measure(low)) / span * room


def _choose_range(values: Sequence[float], *, logarithmic: bool) -> tuple[float, float]:
    if logarithmic:
        low, high = math.floor(math.log10(min(values))), math.ceil(math.log10(max(values)))
        return 10.0**low, 10.0 ** max(high, low + 1)
    return 0.0, max(values) * 1.05 or 1.0


def _choose_ticks(low: float, high: float, *, logarithmic: bool) -> list[float]:
    if logarithmic:
        first, last = round(math.log10(low)), round(math.log10(high))
        return [10.0**power for power in range(first, last + 1)]
    step = 10 ** math.floor(math.log10(high))
    step = step if high / step >= 4 else step / 4 if high / step < 2 else step / 2
    return [place * step for place in range(int(high / step) + 1)]


def _spread(heights: Sequence[float], *, least: float = 15) -> list[float]:
    """Labels at these heights, moved down where they would cover each other."""
    order = sorted(range(len(heights)), key=lambda place: heights[place])
    spread = list(heights)
    for before, after in pairwise(order):
        spread[after] = max(spread[after], spread[before] + least)
    return spread


def _text(x: float, y: float, text: str, *, anchor: str = "start", classes: str = "") -> str:
    kind = f' class="{classes}"' if classes else ""
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}"{kind}>{escape(text)}</text>'


def _figure(height: int, title: str, parts: Sequence[str]) -> str:
    # Its own ground: the page around it may not follow the reader's colour scheme.
    ground = f'<rect x="-12" y="-8" width="{WIDTH + 24}" height="{height + 16}" rx="6" '
    body = "\n".join([f'{ground}fill="var(--paper)"/>', *parts])
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="-12 -8 {WIDTH + 24} {height + 16}" '
        f'role="img" '
        f'aria-label="{escape(title)}">\n<style>{_STYLE}</style>\n{body}\n</svg>\n'
    )
