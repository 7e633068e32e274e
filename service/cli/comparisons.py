"""How old and new compared, as commands show it before and after a switch."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from service.ingestion.regression import Comparison

AcceptChanges = Annotated[
    bool,
    typer.Option("--accept-changes", help="Switch even where results of real questions get worse."),
]
_SOURCES = {
    "questions": "questions that were asked",
    "titles": "titles, for fewer than 20 questions are kept",
    "vectors": "stored vectors, for the model or enough texts are not at hand",
}


def show_comparison(comparison: Comparison) -> None:
    """Print the figures of one tenant in a line."""
    parts = [f"{comparison.overlap:.2f} of the first 10 results stay"]
    if comparison.old_recall is not None:
        parts.append(f"recall {comparison.old_recall:.3f} -> {comparison.new_recall:.3f}")
    if comparison.old_mrr is not None:
        parts.append(
            f"MRR of what people liked {comparison.old_mrr:.3f} -> {comparison.new_mrr:.3f}"
            f" ({comparison.judged} questions)"
        )
    typer.echo(
        f"{comparison.tenant_id}: {', '.join(parts)}; compared on {comparison.questions} "
        f"{_SOURCES[comparison.source]}."
    )
