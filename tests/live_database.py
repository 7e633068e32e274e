"""Real databases for tests: a server a worker and version, a migrated template, a clone a test."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path

import psycopg
from psycopg import sql
from sqlalchemy import Engine

from service.db.embedded import EmbeddedServer
from service.db.engine import open_admin_engine, open_engine
from service.db.migrate import ensure_service_login, migrate

SERVICE_LOGIN = "contextforge_service"
SMALL_DIM = 8
# What is lost in a crash is made again by the next run.
THROWAWAY = {
    "fsync": "off",
    "full_page_writes": "off",
    "synchronous_commit": "off",
    "shared_buffers": "64MB",
}


@dataclass(frozen=True, slots=True)
class LiveDatabase:
    """One database of a running server, with an engine for the administrator and the service."""

    name: str
    server: EmbeddedServer
    version: int
    admin: Engine
    engine: Engine

    @property
    def admin_url(self) -> str:
        return self.server.admin_url(self.name)

    @property
    def service_url(self) -> str:
        return self.server.url(SERVICE_LOGIN, self.name)

    def url_for(self, role: str) -> str:
        """Return the URL with which a login role reaches this database."""
        return self.server.url(role, self.name)


@dataclass(frozen=True, slots=True)
class LiveServer:
    """A running server and the templates its databases are cloned from."""

    server: EmbeddedServer
    version: int
    _templates: dict[int, str] = field(default_factory=dict)
    _numbers: Iterator[int] = field(default_factory=count)

    @contextmanager
    def open_database(self, *, embedding_dim: int | None = SMALL_DIM) -> Iterator[LiveDatabase]:
        """Create a migrated database, or with no dimension an empty one; drop it at the end."""
        template = "template1" if embedding_dim is None else self._template(embedding_dim)
        name = f"test_{next(self._numbers)}"
        self._create(name, template)
        database = self._describe(name)
        try:
            yield database
        finally:
            database.engine.dispose()
            database.admin.dispose()
            self.execute(sql.SQL("drop database {} with (force)").format(sql.Identifier(name)))

    def execute(self, statement: sql.Composed | sql.SQL) -> None:
        """Run one statement as the superuser, outside of any transaction."""
        with psycopg.connect(self.server.admin_url(), autocommit=True) as connection:
            connection.execute(statement)

    def _template(self, embedding_dim: int) -> str:
        if embedding_dim not in self._templates:
            name = f"template_{embedding_dim}"
            self._create(name, "template1")
            database = self._describe(name)
            migrate(database.admin, embedding_dim=embedding_dim)
            ensure_service_login(database.admin, database.service_url)
            database.admin.dispose()  # a template in use cannot be cloned
            self._templates[embedding_dim] = name
        return self._templates[embedding_dim]

    def _create(self, name: str, template: str) -> None:
        # Copying files is faster than writing their pages to the WAL: nothing here syncs.
        self.execute(
            sql.SQL("create database {} template {} strategy file_copy").format(
                sql.Identifier(name), sql.Identifier(template)
            )
        )

    def _describe(self, name: str) -> LiveDatabase:
        return LiveDatabase(
            name=name,
            server=self.server,
            version=self.version,
            admin=open_admin_engine(self.server.admin_url(name)),
            engine=open_engine(self.server.url(SERVICE_LOGIN, name), pool_size=20, pool_timeout=10),
        )


@contextmanager
def run_server(version: int, *, options: dict[str, str] | None = None) -> Iterator[LiveServer]:
    """Run a server of a version in a directory of its own; remove both at the end."""
    # Not pytest's tmp_path: those are closed to the user the server runs as under root.
    place = Path(tempfile.mkdtemp(prefix="cf-"))
    place.chmod(0o755)
    try:
        with EmbeddedServer(place, version, options=options or THROWAWAY) as server:
            yield LiveServer(server, version)
    finally:
        shutil.rmtree(place)
