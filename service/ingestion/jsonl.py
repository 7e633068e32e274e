"""JSON Lines: nodes as they are, or BEIR documents, one a line; a bad line is named."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

import numpy as np
from pydantic_core import from_json

from service.tokens import count_tokens
from service.types import Json, NodeDraft, Vector

BEIR_CORPUS = "corpus.jsonl"

_REQUIRED = ("external_id", "node_type")
_TEXTS = (
    *("external_id", "node_type", "title", "summary", "content", "parent", "section_path"),
    *("header", "doc_title", "url", "lang", "space_id"),
)
_NUMBERS = ("parent_id", "order_index", "token_count")
_KEYS = frozenset(each.name for each in fields(NodeDraft))
_EXTRAS = frozenset({"embedding", "links"})
# What JSON can spell and PostgreSQL cannot store; an escaped backslash before `u` is no escape.
_NUL = re.compile(r"(?<!\\)(?:\\\\)*\\u0000")
_SURROGATE = re.compile(r"\\u[dD][89a-fA-F]")


@dataclass(frozen=True, slots=True)
class NodeRow:
    """A line that is a node: its draft, its vector if it brings one, the ids it links to."""

    line: int
    draft: NodeDraft
    embedding: Vector | None = None
    links: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class BadLine:
    """A line that is no node, and why."""

    line: int
    reason: str


class _Refused(Exception):
    """Why a line is no node."""


def read_jsonl(lines: Iterable[bytes | str]) -> Iterator[NodeRow | BadLine]:
    """Each line that is not blank as a node or as the reason why not; the others go on."""
    for number, line in enumerate(lines, start=1):
        if not line.strip():
            continue
        try:
            yield _read_line(number, line)
        except _Refused as exc:
            yield BadLine(number, str(exc))


def is_beir_folder(path: Path) -> bool:
    """Whether a folder holds a BEIR corpus."""
    return (path / BEIR_CORPUS).is_file()


def _read_line(number: int, line: bytes | str) -> NodeRow:
    values = _parse_object(line)
    links = _strings(values.pop("links", None), "links")
    embedding = _read_embedding(values.pop("embedding", None))
    is_beir = "_id" in values and "external_id" not in values
    draft = _read_beir(values) if is_beir else _read_node(values)
    return NodeRow(number, draft, embedding, links)


def _parse_object(line: bytes | str) -> dict[str, Json]:
    try:
        text = line.decode("utf-8-sig") if isinstance(line, bytes) else line.removeprefix("\ufeff")
        values = _parse_json(text)
        if _SURROGATE.search(text):
            json.dumps(values, ensure_ascii=False).encode()
    except UnicodeDecodeError as exc:
        raise _Refused(f"byte {exc.start} is not valid UTF-8") from exc
    except UnicodeEncodeError as exc:
        raise _Refused("half of a surrogate pair is no character") from exc
    except json.JSONDecodeError as exc:
        raise _Refused(f"not JSON: {exc.msg} at column {exc.colno}") from exc
    except (RecursionError, ValueError) as exc:  # a number of too many digits is a ValueError
        raise _Refused("not JSON that can be read: nested too deeply or a number too long") from exc
    if not isinstance(values, dict):
        raise _Refused("not a JSON object")
    # The pattern is slow on long lines, and almost none has what it looks for.
    if "\\u0000" in text and _NUL.search(text):
        raise _Refused("holds a NUL character")
    return values


def _parse_json(text: str) -> object:
    """Twice as fast as `json` alone, which is asked where something is wrong: it says what."""
    try:
        return from_json(text, allow_inf_nan=False)
    except ValueError:
        return json.loads(text, parse_constant=_refuse_constant)


def _refuse_constant(name: str) -> Json:
    raise _Refused(f"{name} is not JSON")


def _read_beir(values: dict[str, Json]) -> NodeDraft:
    """`_id`, `title` and `text`; what else there is becomes metadata."""
    identity = values.pop("_id")
    if isinstance(identity, bool) or not isinstance(identity, str | int):
        raise _Refused("_id is neither text nor a whole number")
    metadata = _mapping(values.pop("metadata", None))
    title, text = (_text(values.pop(key, None), key) for key in ("title", "text"))
    return _checked(
        NodeDraft(
            external_id=str(identity),
            node_type="article",
            title=title or "",
            content=text or "",
            metadata={**metadata, **values},
            token_count=count_tokens(text or ""),
        )
    )


def _read_node(values: dict[str, Json]) -> NodeDraft:
    """The keys of a node draft, each of its type; null means left out."""
    unknown = sorted(values.keys() - _KEYS)
    if unknown:
        known = ", ".join(sorted(_KEYS | _EXTRAS))
        raise _Refused(f"unknown key {', '.join(map(repr, unknown))}; the keys are {known}")
    given = {key: value for key, value in values.items() if value is not None}
    for key in _REQUIRED:
        if key not in given:
            raise _Refused(f"{key} is missing")
    content = _text(given.get("content"), "content") or ""
    arguments: dict[str, Any] = {"token_count": count_tokens(content)}
    for key, value in given.items():
        arguments[key] = _read_value(key, value)
    return _checked(NodeDraft(**arguments))


def _read_value(key: str, value: Json) -> object:
    if key in _TEXTS:
        return _text(value, key)
    if key in _NUMBERS:
        if isinstance(value, bool) or not isinstance(value, int):
            raise _Refused(f"{key} is not a whole number")
        return value
    if key == "metadata":
        return _mapping(value)
    if key == "acl":
        return _strings(value, key)
    if not isinstance(value, bool):
        raise _Refused(f"{key} is neither true nor false")
    return value


def _checked(draft: NodeDraft) -> NodeDraft:
    if not draft.external_id.strip() or not draft.node_type.strip():
        raise _Refused("external_id or node_type is empty")
    return draft


def _text(value: Json, key: str) -> str | None:
    if value is not None and not isinstance(value, str):
        raise _Refused(f"{key} is not text")
    return value


def _mapping(value: Json) -> Mapping[str, Json]:
    if value is None:
        return {}
    if not isinstance(value, dict):
        raise _Refused("metadata is not an object")
    return value


def _strings(value: Json, key: str) -> tuple[str, ...]:
    if value is None:
        return ()
    if not isinstance(value, list) or not all(isinstance(each, str) for each in value):
        raise _Refused(f"{key} is not a list of texts")
    return tuple(value)


def _read_embedding(value: Json) -> Vector | None:
    if value is None:
        return None
    if not isinstance(value, list) or not value:
        raise _Refused("embedding is not a list of numbers")
    if not set(map(type, value)) <= {int, float}:
        raise _Refused("embedding is not a list of numbers")
    try:
        with np.errstate(over="ignore"):  # what float32 cannot hold becomes infinite, see below
            vector = np.asarray(value, dtype=np.float32)
    except OverflowError as exc:
        raise _Refused("embedding holds a number too large") from exc
    if not np.isfinite(vector).all():
        raise _Refused("embedding holds a number that is too large or not finite")
    return vector
