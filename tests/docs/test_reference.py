"""The reference is complete and names nothing that does not exist; links lead somewhere."""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path

import pytest
from typer.core import TyperCommand, TyperGroup
from typer.main import get_command

from service import errors
from service.cli.app import app
from service.db.failures import _BY_CLASS, _BY_STATE
from service.db.resources import function_files
from service.settings import Settings, describe_settings
from tests.live_database import LiveDatabase

ROOT = Path(__file__).resolve().parents[2]
REFERENCE = ROOT / "docs" / "reference"
PAGES = [ROOT / "README.md", ROOT / "CHANGELOG.md", *sorted((ROOT / "docs").rglob("*.md"))]

_FENCE = re.compile(r"^```.*?^```$", re.MULTILINE | re.DOTALL)
_HEADING = re.compile(r"^(#+) (.+)$", re.MULTILINE)
_LINK = re.compile(r"\[[^\]]*\]\(([^)\s]+)\)")
_SQLSTATE = re.compile(r"`([0-9A-Z]{2}|[0-9A-Z]{5})`")


def read_sections(name: str, level: int) -> dict[str, str]:
    """The sections of a page whose headings have this level, by heading."""
    text = (REFERENCE / name).read_text()
    marks = [match for match in _HEADING.finditer(text) if len(match[1]) <= level]
    ends = [following.start() for _, following in pairwise(marks)] + [len(text)]
    sections = {
        match[2]: text[match.end() : end]
        for match, end in zip(marks, ends, strict=True)
        if len(match[1]) == level
    }
    assert len(sections) == sum(len(match[1]) == level for match in marks), "a heading twice"
    return sections


def list_commands(command: object, name: str) -> Iterator[tuple[str, TyperCommand]]:
    """Every command under its whole name."""
    if isinstance(command, TyperGroup):
        for each, below in command.commands.items():
            yield from list_commands(below, f"{name} {each}")
    elif isinstance(command, TyperCommand):
        yield name, command


def list_errors(parent: type[errors.ServiceError]) -> Iterator[type[errors.ServiceError]]:
    yield parent
    for child in parent.__subclasses__():
        yield from list_errors(child)


def anchor_of(heading: str) -> str:
    """The anchor a heading is reached by."""
    kept = re.sub(r"[^\w\- ]", "", heading.lower())
    return kept.replace(" ", "-")


# --- every name has a heading ------------------------------------------------------------------


def test_every_setting_has_a_section_with_its_default():
    sections = read_sections("settings.md", 3)
    assert set(sections) == {name.upper() for name in Settings.model_fields}
    for view in describe_settings(Settings()):
        if view.name != "CONTEXTFORGE_DATA_DIR":  # depends on the user
            assert f"Default: {view.default or 'none'}. " in sections[view.name]


def test_every_error_has_a_section_with_its_status_and_code():
    sections = read_sections("errors.md", 2)
    family = {error.__name__: error for error in list_errors(errors.ServiceError)}
    assert set(sections) == set(family)
    for name, error in family.items():
        assert f"| {error.status} | `{error.code}` |" in sections[name]


def test_every_sqlstate_stands_under_the_error_it_becomes():
    for name, section in read_sections("errors.md", 2).items():
        row = next(line for line in section.splitlines() if re.match(r"\| \d", line))
        for state in _SQLSTATE.findall(row.rsplit("|", 2)[1]):
            error = _BY_STATE.get(state) or _BY_CLASS[state[:2]]
            assert error.__name__ == name, state
    listed = set(_SQLSTATE.findall((REFERENCE / "errors.md").read_text()))
    assert listed >= {*_BY_STATE, *_BY_CLASS}


def test_every_sql_function_has_a_section():
    assert set(read_sections("sql.md", 3)) == {path.stem for path in function_files()}


def test_every_public_sql_function_has_its_parameters_and_columns_in_order(database: LiveDatabase):
    with database.admin.connect() as connection:
        rows = connection.exec_driver_sql("""
            select p.proname, p.proargnames
            from pg_proc as p
            join pg_language as l on l.oid = p.prolang
            where p.pronamespace = 'public'::regnamespace and l.lanname in ('sql', 'plpgsql')
        """).all()
    sections = read_sections("sql.md", 3)
    assert {name for name, _ in rows} == {
        path.stem for path in function_files() if "api" in path.parts
    }
    for name, arguments in rows:
        signature = re.search(r"^```sql\n(.*?)^```$", sections[name], re.MULTILINE | re.DOTALL)
        assert signature is not None, name
        assert re.findall(r"[(,]\s*(\w+) [a-z]", signature[1]) == arguments, name


def test_the_tables_of_the_reference_have_these_columns(database: LiveDatabase):
    text = (REFERENCE / "sql.md").read_text()
    with database.admin.connect() as connection:
        for table in ("knowledge_nodes", "node_links", "node_ranks"):
            columns = connection.exec_driver_sql(
                "select array_agg(attname::text order by attnum) from pg_attribute"
                " where attrelid = %s::regclass and attnum > 0 and not attisdropped",
                (table,),
            ).scalar_one()
            [row] = re.findall(rf"^\| `{table}` \| (.*) \|$", text, re.MULTILINE)
            assert re.findall(r"`(\w+)`", row) == columns


def test_every_command_has_a_section_that_names_only_its_options():
    sections = read_sections("cli.md", 3)
    commands = dict(list_commands(get_command(app), "contextforge"))
    assert set(sections) == set(commands)
    for name, command in commands.items():
        options = {option for parameter in command.params for option in parameter.opts}
        assert set(re.findall(r"--[a-z][a-z-]+", sections[name])) <= options, name


# --- links -------------------------------------------------------------------------------------


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_links_lead_somewhere(page: Path):
    for link in _LINK.findall(_FENCE.sub("", page.read_text())):
        if link.startswith(("http://", "https://")):
            continue
        path, _, anchor = link.partition("#")
        target = page.parent / path if path else page
        assert target.exists(), link
        if anchor:
            headings = (match[2] for match in _HEADING.finditer(target.read_text()))
            assert anchor in {anchor_of(heading) for heading in headings}, link


def test_every_page_is_reached_from_the_index():
    index = ROOT / "docs" / "README.md"
    linked = {(index.parent / link).resolve() for link in _LINK.findall(index.read_text())}
    for page in PAGES[2:]:
        assert page == index or linked & {page, *page.parents}, page
