"""Where the SQL files and migrations are: inside an installed wheel, or beside a checkout."""

from __future__ import annotations

from pathlib import Path

PACKAGE = Path(__file__).resolve().parent.parent
PACKAGED = PACKAGE / "_resources"
ROOT = PACKAGED if PACKAGED.is_dir() else PACKAGE.parent

MIGRATIONS = ROOT / "migrations"
FUNCTION_FOLDERS = (ROOT / "sql" / "internal", ROOT / "sql" / "api")


def function_files() -> list[Path]:
    """The SQL function files, in the order they are applied."""
    return [path for folder in FUNCTION_FOLDERS for path in sorted(folder.glob("*.sql"))]
