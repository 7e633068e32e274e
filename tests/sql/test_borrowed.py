"""The adapter on an engine or session of somebody else's: it works, and leaves no trace."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
import sqlalchemy as sa
from sqlalchemy import Engine, create_engine
from sqlalchemy.orm import Session, scoped_session, sessionmaker

from service import KnowledgeVerseAdapter
from service.errors import Forbidden, InvalidInput, NotFound, UnsafeLogin
from tests.live_database import LiveDatabase
from tests.sql.adapting import SETTINGS
from tests.tiny_embedder import TinyEmbedder

TENANTS = "select current_setting('app.tenant_ids', true)"


def psycopg_url(url: str) -> str:
    return url.replace("postgresql://", "postgresql+psycopg://", 1)


@pytest.fixture
def foreign(sales: LiveDatabase) -> Iterator[Callable[..., Engine]]:
    """foreign(**options): an engine as another program makes it, which knows no vectors."""
    made: list[Engine] = []

    def make(url: str = sales.service_url, **options: Any) -> Engine:
        made.append(create_engine(psycopg_url(url), **options))
        return made[-1]

    yield make
    for engine in made:
        engine.dispose()


def adapt(database: Engine | Session | scoped_session[Session]) -> KnowledgeVerseAdapter:
    return KnowledgeVerseAdapter(database, settings=SETTINGS, embedder=TinyEmbedder())


def find_fields(adapter: KnowledgeVerseAdapter, tenant: str = "acme_corp") -> list[str]:
    found = adapter.get_similar_fields("customer email", tenant_id=tenant, top_k=5)
    return [field.qualified_name for field in found]


# --- engines ----------------------------------------------------------------------------------


@pytest.mark.parametrize("options", [{}, {"isolation_level": "AUTOCOMMIT"}])
def test_an_engine_that_knows_no_vectors_finds_the_same(
    sales: LiveDatabase, foreign: Callable[..., Engine], options: dict[str, str]
):
    ours = find_fields(adapt(sales.engine))
    assert find_fields(adapt(foreign(**options))) == ours
    assert len(ours) == 5


def test_the_owners_connection_reads_vectors_as_before_and_stays_autocommit(
    foreign: Callable[..., Engine],
):
    engine = foreign(isolation_level="AUTOCOMMIT", pool_size=1, max_overflow=0)
    find_fields(adapt(engine))
    with engine.connect() as connection:
        assert connection.exec_driver_sql("select '[1,2]'::vector").scalar() == "[1,2]"
        raw = connection.connection.driver_connection
        assert raw is not None
        assert raw.autocommit
        assert not connection.exec_driver_sql(TENANTS).scalar()


def test_closing_the_adapter_leaves_the_engine_open(foreign: Callable[..., Engine]):
    engine = foreign()
    with adapt(engine) as adapter:
        find_fields(adapter)
    with engine.connect() as connection:
        assert connection.exec_driver_sql("select 1").scalar() == 1


def test_a_login_that_row_level_security_does_not_bind_is_refused(
    sales: LiveDatabase, foreign: Callable[..., Engine]
):
    with pytest.raises(UnsafeLogin, match="is a superuser"):
        find_fields(adapt(foreign(sales.admin_url)))


def test_another_database_and_another_thing_are_refused():
    lite = create_engine("sqlite://")
    with pytest.raises(InvalidInput, match=r'speaks "sqlite\+pysqlite"'):
        find_fields(adapt(lite))
    lite.dispose()
    with pytest.raises(InvalidInput, match="cannot be reached by a int"):
        KnowledgeVerseAdapter(7, settings=SETTINGS)  # type: ignore[arg-type]


# --- sessions ---------------------------------------------------------------------------------


def test_a_session_is_read_through_and_left_as_it_was(foreign: Callable[..., Engine]):
    with Session(foreign()) as session:
        session.execute(sa.text("create temporary table mine (a int)"))
        session.execute(sa.text("set local app.tenant_ids = 'globex'"))
        assert len(find_fields(adapt(session))) == 5
        assert session.execute(sa.text(TENANTS)).scalar() == "globex"
        assert session.in_transaction()
        session.rollback()
        # What was never committed is gone: the adapter did not commit it.
        assert session.execute(sa.text("select to_regclass('mine')")).scalar() is None


def test_a_failed_call_does_not_cost_the_session_its_transaction(foreign: Callable[..., Engine]):
    with Session(foreign()) as session:
        session.execute(sa.text("create temporary table mine (a int)"))
        with pytest.raises(NotFound):
            find_fields(adapt(session), "initech")
        assert session.execute(sa.text("select to_regclass('mine')")).scalar() is not None


def test_each_call_on_a_session_sees_its_own_tenant_alone(foreign: Callable[..., Engine]):
    with Session(foreign()) as session:
        adapter = adapt(session)
        assert find_fields(adapter, "globex") == ["customer_email_address.customer_email"]
        assert "customer_email_address.customer_email" not in find_fields(adapter, "acme_corp")
        with pytest.raises((Forbidden, InvalidInput)):
            adapter.hybrid_search("email", tenant_ids=["acme_corp,globex"])


def test_a_scoped_session_serves_too(foreign: Callable[..., Engine]):
    session = scoped_session(sessionmaker(foreign()))
    assert len(find_fields(adapt(session))) == 5
    session.remove()


def test_threads_on_one_session_wait_for_each_other(foreign: Callable[..., Engine]):
    with Session(foreign()) as session, ThreadPoolExecutor(4) as pool:
        adapter = adapt(session)
        tenants = ["acme_corp", "globex"] * 6
        found = list(pool.map(lambda tenant: find_fields(adapter, tenant), tenants))
    assert [len(each) for each in found] == [5, 1] * 6


def test_a_session_that_commits_by_itself_is_refused(foreign: Callable[..., Engine]):
    with (
        Session(foreign(isolation_level="AUTOCOMMIT")) as session,
        pytest.raises(InvalidInput, match="commits every statement"),
    ):
        find_fields(adapt(session))
