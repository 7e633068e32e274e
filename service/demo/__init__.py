"""Knowledge that ships with the package: a sales company's schema, and questions about it."""

from __future__ import annotations

from dataclasses import dataclass
from importlib.resources import files


@dataclass(frozen=True, slots=True)
class DemoFiles:
    """The demo's files: a schema for `read_schema_file`, JSON Lines for `read_examples`."""

    schema: bytes
    examples: bytes


def demo_files() -> DemoFiles:
    """Read the demo's files from the installed package."""
    folder = files(__name__)
    return DemoFiles(
        schema=(folder / "sales_db.json").read_bytes(),
        examples=(folder / "sales_examples.jsonl").read_bytes(),
    )
