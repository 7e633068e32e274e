"""contextforge profile and contextforge ranks."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from service.db.engine import tenant_transaction
from service.db.nodes import upsert_links
from service.embedding.protocol import format_version
from service.types import LinkDraft
from tests.command_line import Command
from tests.conftest import MakeNode, MakeTenant, Upsert
from tests.live_database import LiveDatabase

SHIPPED = "all-MiniLM-L6-v2@53aa51172d14/384"
OTHER = format_version("other", "1", 8)


def write_points(path: Path, raw: object, calibrated: object) -> str:
    path.write_text(json.dumps({"raw_cosines": raw, "calibrated_cosines": calibrated}))
    return str(path)


# --- profile -----------------------------------------------------------------------------------


def test_the_shipped_profile_is_there_from_the_start(command: Command):
    shown = command("profile", "show")
    assert (shown.code, shown.err) == (0, "")
    assert f"{SHIPPED}, 0 tenants\n" in shown.out
    assert "   0.420 -> 0.500\n" in shown.out


def test_an_embedder_without_points_is_listed_as_it_is(
    command: Command, make_tenant: MakeTenant, upsert: Upsert, make_node: MakeNode
):
    upsert(
        make_tenant(),
        [make_node("a", "apple")],
        embeddings=[np.ones(8, dtype=np.float32)],
        embedder_version=OTHER,
    )
    assert f"{OTHER}, 1 tenants\n  as it is: no points\n" in command("profile", "show").out


def test_points_of_a_file_become_the_profile_and_identity_takes_them_away(
    command: Command, tmp_path: Path
):
    points = write_points(tmp_path / "points.json", [0, 0.6, 1], [0, 0.5, 1])
    assert command("profile", "set", OTHER, points).code == 0
    [other] = [
        row for row in command("profile", "show", "--json").json if row["embedder_version"] == OTHER
    ]
    assert (other["raw_cosines"], other["calibrated_cosines"]) == ([0, 0.6, 1], [0, 0.5, 1])
    assert command("profile", "set", OTHER, "--identity").code == 0
    assert f"{OTHER}, 0 tenants\n  as it is" in command("profile", "show").out


@pytest.mark.parametrize(
    ("raw", "calibrated", "complaint"),
    [
        ([0, 1], [1, 0], "must not fall"),
        ("all", [0], "not a JSON object with the lists"),
        (["x", "y"], [0, 1], "not a JSON object with the lists"),
        (3, [0, 1], "not a JSON object with the lists"),
    ],
)
def test_points_that_cannot_be_a_profile_are_refused(
    command: Command, tmp_path: Path, raw: object, calibrated: object, complaint: str
):
    refused = command(
        "profile", "set", OTHER, write_points(tmp_path / "points.json", raw, calibrated)
    )
    assert refused.code == 1
    assert complaint in refused.err


def test_a_file_that_is_not_there_and_a_version_without_dimension_are_refused(
    command: Command, tmp_path: Path
):
    assert "cannot be read" in command("profile", "set", OTHER, str(tmp_path / "none")).err
    points = write_points(tmp_path / "points.json", [0, 1], [0, 1])
    assert "MODEL@REVISION/DIMENSION" in command("profile", "set", "other", points).err
    assert "Give a file of points" in command("profile", "set", OTHER).err


SUBJECTS = {
    "sea": (
        *("A cutter is a sailing boat with one mast.", "Spring tides follow the full moon."),
        *("Coral reefs grow in warm, shallow water.", "The anchor holds the ship in place."),
        *("Cod is caught with long lines.", "A lighthouse warns ships of rocks."),
    ),
    "music": (
        *("A violin has four strings.", "The conductor sets the tempo of the orchestra."),
        *("A fugue repeats its theme in several voices.", "Pianos are tuned with a wrench."),
        *("Jazz grew out of blues and ragtime.", "The flute is played from the side."),
    ),
}


def write_folder(folder: Path, sentences: tuple[str, ...]) -> str:
    """A BEIR folder whose questions are the ends of its sentences."""
    folder.mkdir()
    documents = [{"_id": f"d{n}", "text": text} for n, text in enumerate(sentences)]
    asked = [
        {"_id": f"q{n}", "text": " ".join(text.split()[-3:])} for n, text in enumerate(sentences)
    ]
    for name, rows in (("corpus.jsonl", documents), ("queries.jsonl", asked)):
        (folder / name).write_text("".join(f"{json.dumps(row)}\n" for row in rows))
    judged = "".join(f"q{n}\td{n}\t1\n" for n in range(len(sentences)))
    (folder / "qrels.tsv").write_text(f"query-id\tcorpus-id\tscore\n{judged}")
    return str(folder)


@pytest.mark.slow
def test_a_profile_is_fitted_to_folders_and_saved(command: Command, tmp_path: Path):
    folders = [write_folder(tmp_path / name, texts) for name, texts in SUBJECTS.items()]
    fitted = command("profile", "fit", *folders, "--save", "--json").json
    assert fitted["embedder_version"] == SHIPPED
    assert set(fitted["refused"]) == set(folders)
    assert set(fitted["let_through"].values()) == {0}
    [stored] = command("profile", "show", "--json").json
    assert stored["raw_cosines"] == fitted["profile"]["raw_cosines"]
    printed = command("profile", "fit", *folders)
    assert f"{fitted['gate']:6.3f} -> 0.500\n" in printed.out


# --- ranks -------------------------------------------------------------------------------------


def test_ranks_are_computed_and_the_highest_shown(
    command: Command,
    database: LiveDatabase,
    make_tenant: MakeTenant,
    upsert: Upsert,
    make_node: MakeNode,
):
    tenant = make_tenant()
    upsert(tenant, [make_node(name, "text", title=f"Title {name}") for name in "abc"])
    links = [LinkDraft("a", "c"), LinkDraft("b", "c")]
    with tenant_transaction(database.engine, [tenant]) as connection:
        upsert_links(connection, tenant, links=links)

    shown = command("ranks", "--tenant", tenant, "--top", "1")
    assert shown.code == 0
    assert "Title c" in shown.out
    assert "Title a" not in shown.out
    assert "2 links between 3 nodes, 3 articles in all" in shown.err

    as_json = command("ranks", "--tenant", tenant, "--json").json
    assert [node["external_id"] for node in as_json["nodes"]] == ["c", "a", "b"]
    assert sum(node["rank"] for node in as_json["nodes"]) == pytest.approx(1)
    forced = command("ranks", "--tenant", tenant, "--force", "--json").json
    assert forced["state"]["computed_at"] > as_json["state"]["computed_at"]


def test_ranks_of_a_tenant_that_is_not_there_are_an_error(command: Command):
    assert command("ranks", "--tenant", "nobody").code == 1
