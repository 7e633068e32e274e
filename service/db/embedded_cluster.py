"""One cluster of the embedded server: its data directory, and its processes."""

from __future__ import annotations

import hashlib
import os
import shlex
import shutil
import subprocess
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from service.db.embedded_host import (
    CHOOSE_ANOTHER,
    SYSTEM_USER,
    Account,
    create_private_directory,
    find_memory_megabytes,
    find_utf8_ctype,
    fits_socket,
    sync_directory,
)
from service.db.embedded_locks import WAIT_SECONDS, open_lock, try_lock, wait_until
from service.db.embedded_programs import Programs, run_program
from service.errors import DatabaseUnavailable, DatabaseUnsuitable

PORT = 5432
_SOCKET = f".s.PGSQL.{PORT}"
_FIRST_WITH_BUILTIN_LOCALE = 17
_LOG_LIMIT = 16 * 1024 * 1024


def choose_server_options(memory_megabytes: int) -> dict[str, str]:
    """Return the configuration a new cluster is given, fitted to the machine's memory."""
    buffers = max(16, min(256, memory_megabytes // 8))
    return {
        "shared_buffers": f"{buffers}MB",
        "work_mem": f"{max(4, buffers // 8)}MB",
        "maintenance_work_mem": f"{max(64, buffers)}MB",
        "max_connections": "100",
        "jit": "off",
        "wal_level": "minimal",
        "max_wal_senders": "0",
        "max_wal_size": "2GB",
        "checkpoint_timeout": "15min",
        "timezone": "UTC",
        "log_timezone": "UTC",
    }


@dataclass(frozen=True, slots=True)
class Cluster:
    """The files and processes of one server; every method wants start.lock held."""

    home: Path
    tree: Path
    version: int
    account: Account | None

    @property
    def _programs(self) -> Programs:
        return Programs(self.tree, self.version, self.home, self.account)

    @property
    def data(self) -> Path:
        return self.home / "data"

    @property
    def run_dir(self) -> Path:
        return self.home / "run"

    @property
    def log(self) -> Path:
        return self.run_dir / "server.log"

    def ensure_running(self, options: Mapping[str, str]) -> Path:
        """Start the server unless it answers; return the directory of its socket."""
        if self.account is not None:
            self._require_reachable()
        create_private_directory(self.run_dir, self.account)
        alive = open_lock(self.home / "server.lock")
        try:
            # Held but not answering: starting, stopping, or its last processes are dying.
            if not wait_until(lambda: try_lock(alive) or self._answers()):
                raise self._failure("does not answer")
            if not self._answers():
                self._ensure_cluster(sync=options.get("fsync") != "off")
                self._forget_dead_server()
                self._start_postmaster(options, alive=alive)
            return self._recorded_socket_dir() or self.run_dir
        finally:
            os.close(alive)

    def stop(self) -> None:
        """Stop the server if any process of it lives."""
        alive = open_lock(self.home / "server.lock")
        try:
            if try_lock(alive):
                return
            stopped = self._control("stop", "-m", "fast")
            if stopped.returncode != 0 and not try_lock(alive):
                raise self._failure("did not stop")
        finally:
            os.close(alive)

    def _require_reachable(self) -> None:
        entered = run_program("sh", "-c", 'cd -- "$1"', "sh", self.home, account=self.account)
        if entered.returncode != 0:
            raise DatabaseUnsuitable(
                f"As root, the embedded server runs as the system user {SYSTEM_USER!r}, "
                f"and that user may not enter {self.home}.",
                hint=CHOOSE_ANOTHER,
            )

    def _answers(self) -> bool:
        where = self._recorded_socket_dir()
        if where is None:
            return False
        return self._programs.run("pg_isready", "-h", where, "-p", PORT).returncode == 0

    def _recorded_socket_dir(self) -> Path | None:
        lines = self._read_pid_file()
        return Path(lines[4]) if len(lines) > 4 and lines[4] else None

    def _read_pid_file(self) -> list[str]:
        try:
            return (self.data / "postmaster.pid").read_text().splitlines()
        except FileNotFoundError:
            return []

    def _ensure_cluster(self, *, sync: bool) -> None:
        if (self.data / "PG_VERSION").exists():
            return
        # A crash leaves the partial directory, never a half-made cluster in its final place.
        partial = self.home / "data.partial"
        if partial.exists():
            shutil.rmtree(partial)
        create_private_directory(partial, self.account)
        arguments = [*self._choose_initdb_arguments(), *([] if sync else ["--no-sync"])]
        made = self._programs.run("initdb", *arguments, "--pgdata", partial)
        if made.returncode != 0:
            raise DatabaseUnavailable(f"initdb failed in {partial}: {made.stderr.strip()}")
        partial.rename(self.data)
        sync_directory(self.home)

    def _choose_initdb_arguments(self) -> list[str]:
        # Full-text search splits words by the C library's ctype, whatever the provider: with C,
        # a dash or a curly quote outside ASCII would count as a letter.
        arguments = ["--locale=C", f"--lc-ctype={find_utf8_ctype()}", "--encoding=UTF8"]
        if self.version >= _FIRST_WITH_BUILTIN_LOCALE:
            arguments += ["--locale-provider=builtin", "--builtin-locale=C.UTF-8"]
        for name, value in choose_server_options(find_memory_megabytes()).items():
            arguments += ["--set", f"{name}={value}"]
        return [*arguments, "--auth=trust", "--username=postgres"]

    def _forget_dead_server(self) -> None:
        lines = self._read_pid_file()
        if not lines or self._is_our_server(lines[0]):
            return
        # PostgreSQL takes any live process of its user with this id for a running server.
        for socket_dir in {self.run_dir, self._recorded_socket_dir() or self.run_dir}:
            (socket_dir / f"{_SOCKET}.lock").unlink(missing_ok=True)
        (self.data / "postmaster.pid").unlink()

    def _is_our_server(self, pid: str) -> bool:
        try:
            command = Path("/proc", pid.strip(), "cmdline").read_bytes()
        except OSError:
            # Gone; or there is no /proc to look at, and PostgreSQL judges by itself.
            return not Path("/proc/self").exists()
        return os.fsencode(self.data) in command

    def _start_postmaster(self, options: Mapping[str, str], *, alive: int) -> None:
        if self.log.exists() and self.log.stat().st_size > _LOG_LIMIT:
            self.log.replace(self.log.with_suffix(".log.1"))
        settings = {
            **options,
            "listen_addresses": "",
            "unix_socket_directories": f'"{self._choose_socket_dir()}"',
            "port": str(PORT),
        }
        line = " ".join(f"-c {shlex.quote(f'{name}={value}')}" for name, value in settings.items())
        started = self._control("start", "-l", self.log, "-o", line, keep_open=(alive,))
        if started.returncode != 0:
            raise self._failure("did not start")

    def _choose_socket_dir(self) -> Path:
        if fits_socket(self.run_dir, _SOCKET):
            return self.run_dir
        name = f"contextforge-{hashlib.sha256(os.fsencode(self.data)).hexdigest()[:12]}"
        # The runtime directory is asked for by its usual name, not by XDG_RUNTIME_DIR, so that
        # a login session and a cron job choose alike; root's own is closed to the server's user.
        runtime = [] if self.account else [Path(f"/run/user/{os.geteuid()}")]
        for parent in [*runtime, Path(tempfile.gettempdir()), Path("/tmp")]:
            if os.access(parent, os.W_OK) and fits_socket(parent / name, _SOCKET):
                create_private_directory(parent / name, self.account)
                return parent / name
        raise DatabaseUnsuitable(f"No directory is short enough for a socket of {self.data}.")

    def _control(
        self, action: str, *arguments: object, keep_open: Sequence[int] = ()
    ) -> subprocess.CompletedProcess[str]:
        common = ("-D", self.data, "-s", "-w", "-t", WAIT_SECONDS)
        return self._programs.run("pg_ctl", action, *common, *arguments, keep_open=keep_open)

    def _failure(self, what: str) -> DatabaseUnavailable:
        try:
            tail = "\n".join(self.log.read_text(errors="replace").splitlines()[-15:])
        except OSError:
            tail = "(none)"
        return DatabaseUnavailable(
            f"The embedded server in {self.data} {what}. The end of {self.log}:\n{tail}"
        )
