"""Candidates as dictionaries and back: the form in which an agent's results are seen (pure)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import fields, replace
from typing import Any

from service.types import Candidate, Node

Result = dict[str, Any]

_NODE_FIELDS = tuple(each.name for each in fields(Node) if each.name != "content_hash")
_SCORES = ("score", "bm25_score", "vector_score", "confidence", "combined_score", "ce_score")


def group_results(candidates: Sequence[Candidate]) -> list[Result]:
    """Return one result a title, by the order of their best; `sections` has all that was found."""
    return merge_results(_describe(candidate) for candidate in candidates)


def merge_results(results: Iterable[Mapping[str, Any]]) -> list[Result]:
    """Keep the result with the highest similarity of each title, with the sections of all."""
    best: dict[str, Result] = {}
    sections: dict[str, dict[object, Result]] = {}
    for result in results:
        title = str(result.get("title") or result.get("external_id") or "")
        if title not in best or read_similarity(result) > read_similarity(best[title]):
            best[title] = dict(result)
        for section in result.get("sections") or [result]:
            seen = sections.setdefault(title, {})
            key = section.get("node_id", section.get("content"))
            if key not in seen or read_similarity(section) > read_similarity(seen[key]):
                seen[key] = {name: value for name, value in section.items() if name != "sections"}
    return [
        {**result, "sections": list(sections[title].values())} for title, result in best.items()
    ]


def read_similarity(result: Mapping[str, Any]) -> float:
    """Return the raw cosine of a result; 0 where it has none."""
    return float(result.get("similarity") or 0.0)


def to_candidates(results: Sequence[Mapping[str, Any]]) -> list[Candidate]:
    """Return every section of the results as a candidate; what a result does not say is empty."""
    found: dict[object, Candidate] = {}
    for result in results:
        for section in result.get("sections") or [result]:
            candidate = _read(section, number=len(found))
            found.setdefault(candidate.node.node_id, candidate)
    return list(found.values())


def to_results(candidates: Sequence[Candidate]) -> list[Result]:
    """Return each candidate as a result of its own."""
    return [_describe(candidate) for candidate in candidates]


def _describe(candidate: Candidate) -> Result:
    node = {name: getattr(candidate.node, name) for name in _NODE_FIELDS}
    scores = {name: getattr(candidate, name) for name in _SCORES}
    return {
        **node,
        **scores,
        "similarity": candidate.vector_score or 0.0,
        "content_hash": candidate.node.content_hash.hex(),
    }


def _read(result: Mapping[str, Any], *, number: int) -> Candidate:
    given = {name: result[name] for name in _NODE_FIELDS if result.get(name) is not None}
    title = str(given.get("title") or "")
    empty = Node(
        # Not an id of the database: results of another search may have none.
        node_id=-1 - number,
        tenant_id="",
        external_id=title,
        dataset_name="",
        node_type="article",
        title=title,
        summary="",
        content="",
        metadata={},
        parent_id=None,
        section_path=None,
        order_index=None,
        header=None,
        doc_title=None,
        url=None,
        lang=None,
        space_id=None,
        token_count=None,
        content_hash=bytes.fromhex(result.get("content_hash") or ""),
    )
    similarity = read_similarity(result)
    scores = {name: result[name] for name in _SCORES if result.get(name) is not None}
    cosine = result.get("vector_score", similarity)
    return Candidate(
        **{"node": replace(empty, **given), "score": similarity, **scores, "vector_score": cosine}
    )
