"""Locks on files that processes share: the kernel releases a lock when its holder dies."""

from __future__ import annotations

import fcntl
import os
import time
from collections.abc import Callable
from pathlib import Path

WAIT_SECONDS = 120


def open_lock(path: Path) -> int:
    """Open a lock file, made if need be, and owned like the directory it lies in."""
    lock = os.open(path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW, 0o600)
    if os.geteuid() == 0:
        home = path.parent.stat()
        os.fchown(lock, home.st_uid, home.st_gid)
    return lock


def share_lock(lock: int) -> None:
    """Hold the lock together with others who share it, waiting for one who holds it alone."""
    fcntl.flock(lock, fcntl.LOCK_SH)


def try_lock(lock: int) -> bool:
    """Hold the lock alone, if nobody else holds it now."""
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def wait_until(condition: Callable[[], bool]) -> bool:
    """Wait for the condition; False if it did not come true in WAIT_SECONDS."""
    deadline = time.monotonic() + WAIT_SECONDS
    while not condition():
        if time.monotonic() > deadline:
            return False
        time.sleep(0.02)
    return True
