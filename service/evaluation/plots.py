"""Plots as inline SVG, in the colours of the page they stand in (pure)."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from service.evaluation.compare import Interval

WIDTH = 800
_LEFT, _RIGHT, _TOP, _BOTTOM = 44, 12, 10, 24


def plot_interval(interval: Interval) -> str:
    """The mean difference with its interval on a line that shows 0."""
    reach = max(abs(interval.low), abs(interval.high), 1e-3) * 1.25
    height, middle = 80, 34

    def across(value: float) -> float:
        return _LEFT + (value + reach) / (2 * reach) * (WIDTH - _LEFT - _RIGHT)

    marks = "".join(
        _text(across(value), height - 6, f"{value:+.4f}", anchor="middle")
        for value in (-reach, 0.0, reach)
    )
    colour = _colour(interval.mean if interval.low > 0 or interval.high < 0 else 0.0)
    low, high, mean = (across(value) for value in (interval.low, interval.high, interval.mean))
    return _figure(
        height,
        "Mean difference with its interval",
        _line(across(-reach), middle, across(reach), middle, "var(--line)"),
        _line(across(0), middle - 18, across(0), middle + 18, "var(--soft)"),
        _line(low, middle, high, middle, colour, width=5),
        f'<circle cx="{mean:.1f}" cy="{middle}" r="6" fill="{colour}"/>',
        marks,
    )


def plot_differences(differences: Iterable[float]) -> str:
    """One bar a question, sorted."""
    ordered = sorted(differences, reverse=True)
    height = 220
    reach = max((abs(each) for each in ordered), default=0.0) or 1.0
    zero = _TOP + (height - _TOP - _BOTTOM) / 2
    scale = (height - _TOP - _BOTTOM) / 2 / reach
    step = (WIDTH - _LEFT - _RIGHT) / max(1, len(ordered))
    bars = "".join(
        f'<rect x="{_LEFT + place * step:.2f}" y="{min(zero, zero - each * scale):.1f}" '
        f'width="{max(step * 0.9, 0.4):.2f}" height="{abs(each) * scale:.1f}" '
        f'fill="{_colour(each)}"/>'
        for place, each in enumerate(ordered)
        if each
    )
    labels = "".join(
        _text(_LEFT - 6, zero - value * scale + 4, f"{value:+.2f}", anchor="end")
        for value in (reach, 0.0, -reach)
    )
    return _figure(
        height,
        "Difference of every question",
        _line(_LEFT, zero, WIDTH - _RIGHT, zero, "var(--soft)"),
        bars,
        labels,
    )


def plot_pairs(pairs: Sequence[tuple[float, float]]) -> str:
    """One dot a question: a to the right, b upwards; above the diagonal b is better."""
    height = 420
    inner = height - _TOP - _BOTTOM
    left = (WIDTH - inner) / 2

    def place(a: float, b: float) -> tuple[float, float]:
        return left + a * inner, _TOP + (1 - b) * inner

    dots = "".join(
        f'<circle cx="{x:.1f}" cy="{y:.1f}" r="4" fill="{_colour(b - a)}" fill-opacity="0.45"/>'
        for a, b in pairs
        for x, y in [place(a, b)]
    )
    return _figure(
        height,
        "Both values of every question",
        f'<rect x="{left:.1f}" y="{_TOP}" width="{inner}" height="{inner}" fill="none" '
        'stroke="var(--line)"/>',
        _line(*place(0, 0), *place(1, 1), "var(--soft)"),
        dots,
        _text(left, height - 6, "0", anchor="middle"),
        _text(left + inner, height - 6, "a: 1", anchor="middle"),
        _text(left - 6, _TOP + 10, "b: 1", anchor="end"),
    )


def _figure(height: int, title: str, *parts: str) -> str:
    return (
        f'<svg viewBox="0 0 {WIDTH} {height}" role="img" aria-label="{title}">'
        f"{''.join(parts)}</svg>"
    )


def _line(x1: float, y1: float, x2: float, y2: float, colour: str, *, width: float = 1) -> str:
    return (
        f'<line x1="{x1:.1f}" y1="{y1:.1f}" x2="{x2:.1f}" y2="{y2:.1f}" stroke="{colour}" '
        f'stroke-width="{width}"/>'
    )


def _text(x: float, y: float, text: str, *, anchor: str) -> str:
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}">{text}</text>'


def _colour(difference: float) -> str:
    if difference == 0:
        return "var(--mark)"
    return "var(--gain)" if difference > 0 else "var(--loss)"
