"""Questions alone, from JSON or JSON Lines: few-shot examples, or questions without an answer."""

from __future__ import annotations

import json
from pathlib import Path

from service.errors import InvalidInput

# In some exports "query" is the SQL of the question.
_KEYS = ("question", "query", "text")


def read_questions(path: Path) -> list[str]:
    """The questions of a file, which is a JSON list, an object with examples, or JSON Lines."""
    try:
        text = path.read_text(encoding="utf-8-sig")
    except (OSError, UnicodeDecodeError) as exc:
        raise InvalidInput(f"{path}: cannot be read ({exc}).") from exc
    rows = enumerate(_rows(path, text), start=1)
    return [_find_question(row, f"{path}, row {place}") for place, row in rows]


def _rows(path: Path, text: str) -> list[object]:
    try:
        loaded = json.loads(text)
    except ValueError:
        return _lines(path, text)
    if isinstance(loaded, dict) and isinstance(loaded.get("examples"), list):
        return list(loaded["examples"])
    return list(loaded) if isinstance(loaded, list) else [loaded]


def _lines(path: Path, text: str) -> list[object]:
    rows: list[object] = []
    for number, line in enumerate(text.split("\n"), start=1):
        if line.strip():
            try:
                rows.append(json.loads(line))
            except ValueError as exc:
                raise InvalidInput(f"{path}, line {number}: not JSON.") from exc
    return rows


def _find_question(row: object, place: str) -> str:
    if isinstance(row, str):
        return row
    if isinstance(row, dict):
        for key in _KEYS:
            if isinstance(row.get(key), str):
                return str(row[key])
    raise InvalidInput(f"{place}: has no question.", hint=f"Keys: {', '.join(_KEYS)}.")
