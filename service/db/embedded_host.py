"""The machine the embedded server runs on: its accounts, directories, locales and memory."""

from __future__ import annotations

import os
import pwd
import stat
import subprocess
import sys
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from service.errors import DatabaseUnsuitable

SYSTEM_USER = "contextforge"
CHOOSE_ANOTHER = "Set CONTEXTFORGE_DATA_DIR to another directory, or DATABASE_URL to a server."
_SOCKET_PATH_LIMIT = 107 if sys.platform == "linux" else 103


@dataclass(frozen=True, slots=True)
class Account:
    """Who the server runs as, where that is not who we are."""

    uid: int
    gid: int


def find_account(data: Path) -> Account:
    """Return the account root runs the server as: the owner of its data, or the system user."""
    if data.exists() and data.stat().st_uid != 0:
        return Account(data.stat().st_uid, data.stat().st_gid)
    return _look_up_account() or _add_account()


def _look_up_account() -> Account | None:
    try:
        entry = pwd.getpwnam(SYSTEM_USER)
    except KeyError:
        return None
    return Account(entry.pw_uid, entry.pw_gid)


def _add_account() -> Account:
    command = ["useradd", "--system", "--user-group", "--no-create-home", SYSTEM_USER]
    try:
        reason = subprocess.run(command, capture_output=True, text=True, check=False).stderr
    except OSError as exc:
        reason = str(exc)
    # Looked up even after a failure: another process may have added it at the same moment.
    account = _look_up_account()
    if account is None:
        raise DatabaseUnsuitable(
            f"PostgreSQL refuses to run as root, and the system user {SYSTEM_USER!r} could not "
            f"be created: {reason.strip()}.",
            hint="Create it, run as an ordinary user, or set DATABASE_URL to a server.",
        )
    return account


def require_usable_path(data_dir: Path) -> None:
    """Refuse a directory no server can run in."""
    if data_dir.parts[:1] == ("~",):
        raise DatabaseUnsuitable("There is no home directory to keep data in.", hint=CHOOSE_ANOTHER)
    # pg_ctl hands the path to a shell between double quotes.
    if set(str(data_dir.resolve())) & set('"$`\\\n'):
        raise DatabaseUnsuitable(
            f"The embedded server cannot run in {data_dir}: quotes, dollar signs, backslashes and "
            "line breaks are not possible.",
            hint=CHOOSE_ANOTHER,
        )


def create_directory(path: Path, mode: int) -> None:
    """Make a directory and its missing parents; what was there keeps its permissions."""
    if path.is_dir():
        return
    create_directory(path.parent, mode)
    try:
        path.mkdir()
    except FileExistsError:
        if not path.is_dir():
            raise NotADirectoryError(f"{path} is not a directory") from None
        return
    path.chmod(mode)  # whatever the umask; only ever on what was just made


def create_private_directory(path: Path, account: Account | None) -> None:
    """Make a directory only the server's account can enter, or check that it is one."""
    owner = os.geteuid() if account is None else account.uid
    with suppress(FileExistsError):
        path.mkdir(mode=0o700)
    found = path.lstat()
    if account is not None and found.st_uid == 0 and stat.S_ISDIR(found.st_mode):
        os.chown(path, account.uid, account.gid, follow_symlinks=False)
        found = path.lstat()
    if not stat.S_ISDIR(found.st_mode) or found.st_uid != owner or found.st_mode & 0o077:
        raise DatabaseUnsuitable(
            f"{path} must be a directory that belongs to user {owner} alone (mode 0700).",
            hint="Remove it and start again.",
        )


def sync_directory(path: Path) -> None:
    """Make sure that what was renamed in a directory is so after a power failure too."""
    folder = os.open(path, os.O_RDONLY)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)


def fits_socket(directory: Path, name: str) -> bool:
    """Say whether a socket of this name can be in a directory: its path is limited."""
    # A comma would split the path in two, in the server's option and in libpq's.
    path = os.fsencode(directory / name)
    return len(path) <= _SOCKET_PATH_LIMIT and b"," not in path and b'"' not in path


def find_utf8_ctype() -> str:
    """Return a locale that knows letters beyond ASCII, C where the machine has none."""
    try:
        listed = subprocess.run(["locale", "-a"], capture_output=True, text=True, check=False)
    except OSError:
        return "C.UTF-8"
    names = {name.lower().replace("-", ""): name for name in listed.stdout.split()}
    found = (names.get(each) for each in ("c.utf8", "en_us.utf8"))
    return next((name for name in found if name), "C")


def find_memory_megabytes() -> int:
    """Return the memory of the machine, or of the container if that is less."""
    memory = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    try:
        limit = Path("/sys/fs/cgroup/memory.max").read_text().strip()
    except OSError:
        limit = "max"
    return min(memory, int(limit) if limit.isdigit() else memory) // 2**20
