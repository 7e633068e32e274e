"""The schema as pg_dump writes it, without what differs from run to run.

`python -m tests.migrations.schema_dump` writes schema.sql anew: look at its diff before committing.
"""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

from tests.live_database import LiveDatabase, run_server

CHECKED_IN = Path(__file__).parent / "schema.sql"
DEFAULT_DIM = 1024
_ENTRY = re.compile(r"^-- Name: (?P<name>.*); Type: (?P<type>.*?); Schema: .*$", re.MULTILINE)
_NOISE = re.compile(r"^(--|SET |SELECT pg_catalog\.set_config|\\(un)?restrict )")


def dump_schema(database: LiveDatabase, *, functions: bool = True) -> str:
    """The whole schema; without functions, what the revisions alone make."""
    dumped = subprocess.run(
        [database.server.bin_dir / "pg_dump", "--schema-only", database.admin_url],
        capture_output=True,
        text=True,
        check=True,
    ).stdout
    header, *entries = re.split(r"^(?=-- Name: )", dumped, flags=re.MULTILINE)
    kept = [header, *(entry for entry in entries if functions or not _is_function(entry))]
    lines = (line for entry in kept for line in entry.splitlines() if not _NOISE.match(line))
    return re.sub(r"\n{3,}", "\n\n", "\n".join(lines)).strip() + "\n"


def _is_function(entry: str) -> bool:
    found = _ENTRY.match(entry)
    assert found is not None, entry[:200]
    return found["type"] == "FUNCTION" or found["name"].startswith("FUNCTION ")


def main() -> None:
    with run_server(18) as server, server.open_database(embedding_dim=DEFAULT_DIM) as database:
        CHECKED_IN.write_text(dump_schema(database, functions=False))


if __name__ == "__main__":
    main()
