"""The command line as tests run it: one command, and what came of it."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any, Protocol


@dataclass(frozen=True, slots=True)
class Result:
    """The exit code of a command and what it printed."""

    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        return json.loads(self.out)

    @property
    def counts(self) -> tuple[int, int, int, int]:
        """Added, changed, unchanged, removed: of a report of ingestion."""
        report = self.json
        return report["added"], report["changed"], report["unchanged"], report["removed"]


class Command(Protocol):
    def __call__(self, *arguments: str) -> Result: ...
