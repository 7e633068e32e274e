"""The owner's transaction that administrative commands run in.

Commands import the database and the models when they run, not when they are listed: that keeps
`contextforge --help` quick.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from sqlalchemy import Connection


@contextmanager
def administer() -> Iterator[Connection]:
    """Open one transaction as the owner of the database the settings name; commit at the end."""
    from service.db.database import open_admin
    from service.db.engine import owner_transaction
    from service.settings import load_settings

    with open_admin(load_settings()) as admin, owner_transaction(admin.engine) as connection:
        yield connection
