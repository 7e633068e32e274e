"""What is shipped: the pins, the container files, and a wheel that works outside the checkout."""

import json
import os
import re
import stat
import subprocess
import sys
import tomllib
import zipfile
from pathlib import Path
from typing import Any

import pytest
import yaml

ROOT = Path(__file__).resolve().parents[2]
ADDRESS = re.compile(r"https?://([^/\s'\"]+)")


def read_compose() -> dict[str, Any]:
    loaded: dict[str, Any] = yaml.safe_load((ROOT / "docker-compose.yml").read_text())
    return loaded


def list_files(directory: Path) -> set[str]:
    return {
        path.relative_to(directory).as_posix()
        for path in directory.rglob("*")
        if path.is_file() and path.suffix != ".pyc"
    }


def read_pins() -> dict[str, str]:
    lines = (ROOT / "constraints.txt").read_text().splitlines()
    return dict(line.split("==") for line in lines if line and not line.startswith("#"))


def normalise(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


# --- pins -----------------------------------------------------------------------------------


def test_every_declared_dependency_has_an_exact_pin():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    declared = project["dependencies"] + project["optional-dependencies"]["dev"]
    names = {normalise(re.split(r"[\[<>=!~ ;]", requirement)[0]) for requirement in declared}
    assert names <= {normalise(name) for name in read_pins()}


def test_a_pin_is_a_name_and_a_public_version():
    for name, version in read_pins().items():
        assert re.fullmatch(r"[A-Za-z0-9._-]+", name)
        assert re.fullmatch(r"[0-9][0-9A-Za-z.]*", version), f"{name}=={version}"


def test_torch_is_pinned_so_that_a_cpu_build_fits():
    assert read_pins()["torch"] == "2.13.0"


@pytest.mark.parametrize(
    "name", ["pyproject.toml", "constraints.txt", "Makefile", "Dockerfile", "docker-compose.yml"]
)
def test_no_build_file_names_a_foreign_host(name: str):
    hosts = set(ADDRESS.findall((ROOT / name).read_text()))
    assert hosts <= {"127.0.0.1:8000"}


# --- commands -------------------------------------------------------------------------------


def test_ci_runs_the_commands_that_people_run():
    script = ROOT / ".ci" / "run"
    assert script.stat().st_mode & stat.S_IXUSR
    assert "make check\nmake test\n" in script.read_text()


def test_make_help_lists_every_command():
    help_text = subprocess.run(
        ["make", "help"], cwd=ROOT, check=True, capture_output=True, text=True
    ).stdout
    listed = set(re.findall(r"^ +make ([a-z-]+) ", help_text, re.MULTILINE))
    phony = set(re.findall(r"^\.PHONY: ([a-z-]+)$", (ROOT / "Makefile").read_text(), re.MULTILINE))
    assert listed == phony
    assert listed >= {"help", "run", "test", "check", "bench"}


# --- compose --------------------------------------------------------------------------------


def test_the_database_and_the_service_have_health_checks():
    services = read_compose()["services"]
    assert "pg_isready" in services["db"]["healthcheck"]["test"]
    assert "/healthz" in services["api"]["healthcheck"]["test"][-1]
    assert "/healthz" in (ROOT / "Dockerfile").read_text()


def test_each_service_waits_for_what_it_needs():
    services = read_compose()["services"]
    assert services["migrate"]["depends_on"] == {"db": {"condition": "service_healthy"}}
    assert services["api"]["depends_on"] == {
        "migrate": {"condition": "service_completed_successfully"}
    }


def test_every_secret_of_compose_is_required_with_a_sentence():
    services = read_compose()["services"]
    values = [
        services["db"]["environment"]["POSTGRES_PASSWORD"],
        services["migrate"]["environment"]["ADMIN_DATABASE_URL"],
        services["migrate"]["environment"]["DATABASE_URL"],
        services["api"]["environment"]["DATABASE_URL"],
    ]
    for value in values:
        assert re.search(r"\$\{[A-Z_]+:\?set [A-Z_]+ in \.env", value), value


def test_the_example_environment_names_every_secret_compose_requires():
    required = set(re.findall(r"\$\{([A-Z_]+):\?", (ROOT / "docker-compose.yml").read_text()))
    example = (ROOT / ".env.example").read_text()
    assert required == set(re.findall(r"^([A-Z_]+)=$", example, re.MULTILINE))


def test_the_service_never_sees_the_url_of_the_administrator():
    services = read_compose()["services"]
    assert "ADMIN_DATABASE_URL" in services["migrate"]["environment"]
    assert "ADMIN_DATABASE_URL" not in services["api"]["environment"]
    assert "://contextforge_service:" in services["api"]["environment"]["DATABASE_URL"]
    assert "env_file" not in services["api"]


def test_the_database_survives_in_a_volume_and_the_port_stays_on_this_machine():
    compose = read_compose()
    assert compose["services"]["db"]["volumes"] == ["database:/var/lib/postgresql"]
    assert "database" in compose["volumes"]
    assert "ports" not in compose["services"]["db"]
    assert compose["services"]["api"]["ports"] == ["127.0.0.1:8000:8000"]


def test_the_image_runs_as_an_ordinary_user_and_gets_no_secrets():
    final_stage = (ROOT / "Dockerfile").read_text().split("\nFROM ")[-1]
    assert re.search(r"^USER contextforge$", final_stage, re.MULTILINE)
    allowed = (ROOT / ".dockerignore").read_text().splitlines()
    assert "*" in allowed
    assert "!.env" not in allowed


# --- the wheel ------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("dist")
    command = [sys.executable, "-m", "build", "--wheel", "--no-isolation", "--outdir", str(out)]
    subprocess.run([*command, str(ROOT)], check=True, capture_output=True)
    (built,) = out.glob("*.whl")
    return built


@pytest.fixture(scope="module")
def installed(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    site = tmp_path_factory.mktemp("site")
    command = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--no-index"]
    subprocess.run([*command, "--target", str(site), str(wheel)], check=True, capture_output=True)
    return site


def run_installed(site: Path, arguments: list[str]) -> str:
    environment = os.environ | {"PYTHONPATH": str(site)}
    done = subprocess.run(
        arguments, cwd=site.parent, env=environment, check=True, capture_output=True, text=True
    )
    return done.stdout


LIST_RESOURCES = """
import importlib.resources, json, pathlib, service
root = importlib.resources.files("service") / "_resources"
files = sorted(p.relative_to(root).as_posix() for p in pathlib.Path(str(root)).rglob("*.*"))
print(json.dumps({"package": service.__file__, "files": files}))
"""


@pytest.mark.slow
@pytest.mark.xdist_group("wheel")
def test_the_wheel_carries_every_sql_file_migration_and_page_of_the_demo(wheel: Path):
    names = set(zipfile.ZipFile(wheel).namelist())
    for directory in ("sql", "migrations", "docs"):
        expected = {f"service/_resources/{directory}/{f}" for f in list_files(ROOT / directory)}
        assert expected
        assert expected <= names
    assert "service/py.typed" in names
    demo = {f"service/demo/{f}" for f in list_files(ROOT / "service" / "demo")}
    assert demo <= names
    assert any(name.endswith(".jsonl") for name in demo)


@pytest.mark.slow
@pytest.mark.xdist_group("wheel")
def test_the_wheel_carries_nothing_but_the_package(wheel: Path):
    tops = {name.split("/")[0] for name in zipfile.ZipFile(wheel).namelist()}
    assert {top for top in tops if not top.endswith(".dist-info")} == {"service"}


@pytest.mark.slow
@pytest.mark.xdist_group("wheel")
def test_an_installed_wheel_finds_its_resources_outside_the_checkout(installed: Path):
    seen = json.loads(run_installed(installed, [sys.executable, "-c", LIST_RESOURCES]))
    assert Path(seen["package"]).is_relative_to(installed)
    files = {f for f in seen["files"] if not f.endswith(".pyc")}
    for directory in ("sql", "migrations", "docs"):
        assert {f"{directory}/{f}" for f in list_files(ROOT / directory)} <= files


READ_DEMO = """
import json
from service.ingestion.demo import read_demo
demo = read_demo()
pages = [page.external_id for page in demo.documents]
print(json.dumps({"pages": pages, "tables": len(demo.schema.tables), "rows": len(demo.examples)}))
"""


@pytest.mark.slow
@pytest.mark.xdist_group("wheel")
def test_an_installed_wheel_finds_the_knowledge_of_the_demo(installed: Path):
    seen = json.loads(run_installed(installed, [sys.executable, "-c", READ_DEMO]))
    pages = {f"docs/{name}" for name in list_files(ROOT / "docs") if name.endswith(".md")}
    assert {"README.md", *pages} == set(seen["pages"])
    assert seen["tables"] >= 15
    assert seen["rows"] >= 40


@pytest.mark.slow
@pytest.mark.xdist_group("wheel")
def test_the_installed_command_answers_outside_the_checkout(installed: Path):
    assert "migrate" in run_installed(installed, [str(installed / "bin/contextforge"), "--help"])
