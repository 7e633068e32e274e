"""The SQL functions as the catalog knows them, held against the files they come from."""

from __future__ import annotations

import re
from dataclasses import dataclass

import pytest

from service.db.engine import owner_transaction
from service.db.resources import function_files
from tests.live_database import LiveDatabase

# They read registry tables for callers who may not; every other function runs as its caller.
SECURITY_DEFINERS = {
    "admit_key",
    "authenticate_key",
    "cancel_job",
    "embedder_profile",
    "embedding_dim",
    "end_job",
    "enqueue_job",
    "find_jobs",
    "job_tenant",
    "read_job_document",
    "report_job_progress",
    "retry_job",
    "return_job",
    "schema_revision",
    "search_settings",
    "settle_jobs",
    "start_job",
}
# pg_temp last: else anyone's temporary table stands before ours.
HARMLESS_ENDING = "pg_temp"


@dataclass(frozen=True, slots=True)
class Function:
    """A function of ours as pg_proc has it."""

    name: str
    comment: str | None
    definer: bool
    settings: tuple[str, ...]
    standard_body: bool
    public: bool
    language: str


@pytest.fixture
def functions(database: LiveDatabase) -> list[Function]:
    """Every function the owner has in this database; those of the queue are procrastinate's."""
    with owner_transaction(database.admin) as connection:
        rows = connection.exec_driver_sql("""
            select
                n.nspname || '.' || p.proname, obj_description(p.oid, 'pg_proc'), p.prosecdef,
                coalesce(p.proconfig, '{}'), p.prosqlbody is not null,
                has_function_privilege('public', p.oid, 'execute'), l.lanname
            from pg_proc as p
            join pg_namespace as n on n.oid = p.pronamespace
            join pg_language as l on l.oid = p.prolang
            where pg_get_userbyid(p.proowner) = 'contextforge_owner'
                and n.nspname <> 'contextforge_queue'
            order by 1
        """).all()
    return [
        Function(name, comment, definer, tuple(config), standard, public, language)
        for name, comment, definer, config, standard, public, language in rows
    ]


def test_every_function_has_a_comment(functions: list[Function]) -> None:
    assert [f.name for f in functions if not (f.comment or "").strip()] == []


def test_no_function_can_be_executed_by_everyone(functions: list[Function]) -> None:
    assert [f.name for f in functions if f.public] == []


def test_every_function_pins_its_search_path(functions: list[Function]) -> None:
    def is_pinned(function: Function) -> bool:
        paths = [s for s in function.settings if s.startswith("search_path=")]
        return function.standard_body or (bool(paths) and paths[0].endswith(HARMLESS_ENDING))

    assert [f.name for f in functions if not is_pinned(f)] == []


def test_only_the_listed_functions_run_as_their_definer(functions: list[Function]) -> None:
    assert {f.name.split(".")[1] for f in functions if f.definer} == SECURITY_DEFINERS


def test_a_definer_function_looks_nothing_up_where_others_may_create(
    functions: list[Function],
) -> None:
    for function in functions:
        if function.definer:
            assert "search_path=pg_catalog, pg_temp" in function.settings


def test_no_function_has_an_overload(functions: list[Function]) -> None:
    names = [f.name for f in functions]

    assert sorted(set(names)) == names


def test_each_file_is_named_after_its_function_and_each_function_has_a_file(
    functions: list[Function],
) -> None:
    schemas = {"api": "public", "internal": "contextforge"}
    files = sorted(f"{schemas[path.parent.name]}.{path.stem}" for path in function_files())

    assert files == [f.name for f in functions]


@pytest.mark.parametrize("path", function_files(), ids=lambda path: path.stem)
def test_a_file_creates_one_function_and_says_all_about_it(path) -> None:
    text = path.read_text()
    head, _, _ = text.partition("$$")
    schema = "public" if path.parent.name == "api" else "contextforge"

    created = re.findall(r"create (?:or replace )?function ([\w.]+)", text)
    assert created == [f"{schema}.{path.stem}"]
    assert len(re.findall(r"^(?:immutable|stable|volatile)$", head, re.MULTILINE)) == 1
    assert f"comment on function {schema}.{path.stem}(" in text
    assert f"revoke all on function {schema}.{path.stem}(" in text
    is_volatile = re.search(r"^volatile$", head, re.MULTILINE)
    assert is_volatile or re.search(r"^parallel (?:safe|restricted|unsafe)$", head, re.MULTILINE)


def test_functions_that_read_tenant_tables_are_plpgsql(functions: list[Function]) -> None:
    tables = re.compile(
        r"\b(knowledge_nodes|node_links|node_ranks|tenant_profiles|segments|postings|search_nodes"
        r"|ann_nodes|link_marks|rank_states)\b(?! ?\[)"
    )
    sources = {path.stem: path.read_text() for path in function_files()}
    for function in functions:
        body = sources[function.name.split(".")[1]].split("comment on")[0]
        if tables.search(body):
            assert function.language == "plpgsql", function.name
