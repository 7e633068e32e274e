"""The PostgreSQL server that comes with the service: started on first use, stopped after the last.

Everything lives in `data_dir/pgNN`: `data` (the cluster), `run` (socket and log) and three locks.
The kernel releases a lock when its holder dies, so nothing here trusts a recorded process id:
`start.lock` is held while the server is started or stopped, `users.lock` is shared by everyone
who uses it, `server.lock` is inherited and held by the server's own processes.
"""

from __future__ import annotations

import atexit
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from types import TracebackType
from typing import Self
from urllib.parse import quote

from service.db.embedded_cluster import PORT, Cluster
from service.db.embedded_host import (
    CHOOSE_ANOTHER,
    create_directory,
    find_account,
    require_usable_path,
)
from service.db.embedded_locks import WAIT_SECONDS, open_lock, share_lock, try_lock, wait_until
from service.db.embedded_programs import find_install_tree
from service.errors import DatabaseUnavailable, DatabaseUnsuitable


class EmbeddedServer:
    """One user's hold on the server of a data directory; the last hold released stops it."""

    def __init__(
        self, data_dir: Path, version: int = 18, *, options: Mapping[str, str] | None = None
    ) -> None:
        """Describe the server; `options` (such as fsync=off) count only for who starts it."""
        require_usable_path(data_dir)
        self._tree = find_install_tree(version)
        self._version = version
        self._options = dict(options or {})
        self._home = data_dir.resolve() / f"pg{version}"
        self._socket_dir: Path | None = None
        self._users: int | None = None
        self._pid = 0

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.release()

    @property
    def bin_dir(self) -> Path:
        """Return the directory of psql, pg_dump and their kin."""
        return self._tree / "bin"

    @property
    def log_file(self) -> Path:
        """Return where the server's log is."""
        return self._home / "run" / "server.log"

    def url(self, user: str, database: str) -> str:
        """Return the URL of a database for a role, while the server is held."""
        if self._socket_dir is None:
            raise DatabaseUnavailable("The embedded server is not started.")
        where = quote(str(self._socket_dir), safe="/")
        return f"postgresql://{quote(user)}@/{quote(database)}?host={where}&port={PORT}"

    def admin_url(self, database: str = "postgres") -> str:
        """Return the URL of a database for the superuser, while the server is held."""
        return self.url("postgres", database)

    def start(self) -> None:
        """Hold the server, creating and starting it as needed; again is a no-op."""
        if self._users is not None:
            return
        try:
            create_directory(self._home, 0o755 if os.geteuid() == 0 else 0o700)
            with self._exclusively():
                self._users = self._take_hold()
        except (PermissionError, NotADirectoryError) as exc:
            raise DatabaseUnsuitable(
                f"The embedded server cannot use {self._home.parent}: {exc}.", hint=CHOOSE_ANOTHER
            ) from exc
        self._pid = os.getpid()
        atexit.register(self.release)

    def release(self) -> None:
        """Let go of the server and stop it if nobody else holds it; again is a no-op."""
        users, self._users, self._socket_dir = self._users, None, None
        if users is None:
            return
        atexit.unregister(self.release)
        try:
            # After a fork the hold is still the parent's.
            if os.getpid() == self._pid:
                with self._exclusively():
                    if try_lock(users):
                        self._open_cluster().stop()
        finally:
            os.close(users)

    def _take_hold(self) -> int:
        users = open_lock(self._home / "users.lock")
        try:
            # Never waits: the exclusive lock is only taken by who holds start.lock.
            share_lock(users)
            self._socket_dir = self._open_cluster().ensure_running(self._options)
        except BaseException:
            os.close(users)
            raise
        return users

    def _open_cluster(self) -> Cluster:
        account = find_account(self._home / "data") if os.geteuid() == 0 else None
        return Cluster(self._home, self._tree, self._version, account)

    @contextmanager
    def _exclusively(self) -> Iterator[None]:
        lock = open_lock(self._home / "start.lock")
        try:
            if not wait_until(lambda: try_lock(lock)):
                raise DatabaseUnavailable(
                    f"Another process has been starting or stopping the embedded server in "
                    f"{self._home} for {WAIT_SECONDS} seconds."
                )
            yield
        finally:
            os.close(lock)
