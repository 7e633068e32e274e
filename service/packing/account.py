"""The account of a pack: its blocks as values, and what became of every candidate (pure)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from service.packing.item import Item
from service.packing.layout import Draft
from service.packing.rules import PackingRules
from service.packing.select import Choice, Refusal
from service.packing.types import (
    ItemTrace,
    Outcome,
    PackedBlock,
    PackedItem,
    PackTrace,
    Reason,
    Reunion,
)
from service.types import Node


def describe_blocks(drafts: Sequence[Draft], choices: Sequence[Choice]) -> tuple[PackedBlock, ...]:
    """The blocks with what each of their pieces was worth; choices are those that are in."""
    known = {choice.item.node_id: choice for choice in choices}
    return tuple(_describe_block(draft, known) for draft in drafts)


def explain(
    drafts: Sequence[Draft],
    *,
    budget: int,
    tokens: int,
    rules: PackingRules,
    kept: Sequence[Choice],
    late: Sequence[Choice],
    refusals: Sequence[Refusal],
    added: Mapping[int, int],
    wanted: int | None,
) -> PackTrace:
    """Say of each candidate where it is or why it is not; `late` are those beyond the budget."""
    homes = {node.node_id: draft for draft in drafts for node in draft.nodes}
    traces = [
        *(_trace_choice(choice, homes) for choice in kept),
        *(_trace_late(choice, homes, detail) for choice, detail in _say_why(late, budget, wanted)),
        *(_trace_refusal(refusal, homes) for refusal in refusals),
    ]
    traces.sort(key=lambda trace: (-(trace.score + trace.bonus), trace.node_id, trace.outcome))
    candidates = {trace.node_id for trace in traces}
    return PackTrace(
        budget=budget,
        tokens=tokens,
        vocabulary=rules.vocabulary,
        per_doc_cap=rules.per_doc_cap,
        per_section_cap=rules.per_section_cap,
        novelty_alpha=rules.novelty_alpha,
        answerability_bonus=rules.answerability_bonus,
        section_reunification=rules.section_reunification,
        items=tuple(traces),
        reunions=tuple(
            Reunion(node_id, homes[node_id].number, more, node_id in candidates)
            for node_id, more in added.items()
        ),
    )


def _describe_block(draft: Draft, known: Mapping[int, Choice]) -> PackedBlock:
    first = draft.nodes[0]
    scores = [known[n.node_id].item.candidate.score for n in draft.nodes if n.node_id in known]
    return PackedBlock(
        number=draft.number,
        items=tuple(_describe_item(node, known.get(node.node_id)) for node in draft.nodes),
        tenant_id=first.tenant_id,
        title=first.doc_title or first.title,
        heading=draft.heading,
        section_path=first.section_path,
        header=first.header,
        url=first.url,
        body=draft.body,
        tokens=draft.tokens,
        score=max(scores),
        trimmed=draft.trimmed,
    )


def _describe_item(node: Node, choice: Choice | None) -> PackedItem:
    if choice is None:
        return PackedItem(node.node_id, "reunited")
    return PackedItem(node.node_id, "selected", choice.item.candidate.score, choice.value)


def _say_why(
    late: Sequence[Choice], budget: int, wanted: int | None
) -> Iterator[tuple[Choice, str]]:
    """Why each of the choices beyond the budget is out: the first would not fit, and ended it."""
    for place, choice in enumerate(late):
        if place or wanted is None:
            yield choice, "worth less than one that did not fit"
        else:
            yield choice, f"{wanted - budget} tokens too many"


def _trace_choice(choice: Choice, homes: Mapping[int, Draft]) -> ItemTrace:
    home = homes[choice.item.node_id]
    return _trace(
        choice.item,
        novelty=choice.novelty,
        value=choice.value,
        outcome="selected",
        block=home.number,
        trimmed=home.trimmed,
    )


def _trace_late(choice: Choice, homes: Mapping[int, Draft], detail: str) -> ItemTrace:
    home = homes.get(choice.item.node_id)
    return _trace(
        choice.item,
        novelty=choice.novelty,
        value=choice.value,
        outcome="reunited" if home else "dropped",
        block=home.number if home else None,
        reason="budget",
        detail=detail,
    )


def _trace_refusal(refusal: Refusal, homes: Mapping[int, Draft]) -> ItemTrace:
    # The same node a second time stays out though its first is in.
    home = None if refusal.reason == "same_node" else homes.get(refusal.item.node_id)
    return _trace(
        refusal.item,
        novelty=refusal.novelty,
        outcome="reunited" if home else "dropped",
        block=home.number if home else None,
        reason=refusal.reason,
        other=refusal.other,
        detail=refusal.detail,
    )


def _trace(
    item: Item,
    *,
    outcome: Outcome,
    novelty: float,
    block: int | None,
    value: float | None = None,
    trimmed: bool = False,
    reason: Reason | None = None,
    other: int | None = None,
    detail: str | None = None,
) -> ItemTrace:
    node, answer = item.candidate.node, item.answer
    return ItemTrace(
        node_id=node.node_id,
        title=node.doc_title or node.title,
        section_path=node.section_path,
        outcome=outcome,
        tokens=item.tokens,
        score=item.candidate.score,
        bonus=item.bonus,
        agreement=answer.agreement,
        form=answer.form,
        header_match=answer.header_match,
        novelty=novelty,
        value=value,
        block=block,
        trimmed=trimmed,
        reason=reason,
        other=other,
        detail=detail,
    )
