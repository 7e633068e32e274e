"""contextforge eval, compare and tune from end to end, on small sets of our own."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from service.db.engine import owner_transaction
from tests.command_line import Command
from tests.evaluation.beir_folder import (
    DOCUMENTS,
    JUDGEMENTS,
    QUESTIONS,
    write_folder,
    write_lines,
)
from tests.evaluation.conftest import MODEL_DIM
from tests.evaluation.test_sets import ASKED, SHOP
from tests.live_database import LiveDatabase


@pytest.fixture
def folder(tmp_path: Path) -> str:
    return str(write_folder(tmp_path / "village", links={"harbour": ["tower"]}))


def list_tenants(database: LiveDatabase) -> list[str]:
    with owner_transaction(database.admin) as connection:
        statement = "select tenant_id from contextforge.tenants order by 1"
        return list(connection.exec_driver_sql(statement).scalars())


def count(database: LiveDatabase, statement: str) -> int:
    with owner_transaction(database.admin) as connection:
        return int(connection.exec_driver_sql(statement).scalar_one())


def write_vectors(folder: Path, *, good: bool) -> tuple[str, str, str]:
    """Vectors that lead each question to its document, or away from it, as an option."""
    place = {document: number for number, document in enumerate(DOCUMENTS)}
    directions = np.eye(len(DOCUMENTS), dtype=np.float32)
    best = [max(known, key=known.__getitem__) for known in JUDGEMENTS.values()]
    rows = [directions[(place[each] + (not good)) % len(place)] for each in best]
    np.save(folder / "corpus.npy", directions)
    np.save(folder / "queries.npy", np.stack(rows).astype(np.float16))
    return "--embeddings", str(folder / "corpus.npy"), str(folder / "queries.npy")


# --- eval -------------------------------------------------------------------------------------


def test_a_folder_is_measured_in_every_mode_and_leaves_nothing_behind(
    command: Command, live: LiveDatabase, folder: str
):
    for mode in ("bm25", "vector", "hybrid"):
        result = command("eval", folder, "--mode", mode, "--json")
        assert result.code == 0, result.err
        found = result.json
        assert found["mode"] == mode
        assert found["ndcg@10"] > 0.8
        assert found["mrr@10"] > 0.8
        assert found["p@5"] >= found["p@10"] >= found["p@20"] >= found["p@100"] > 0
        assert found["recall@5"] <= found["recall@10"] <= found["recall@20"]
        assert found["recall@100"] >= 0.9
        assert (found["queries"], found["corpus"]) == (6, 8)
        assert set(found["latency_ms"]) == ({"search"} if mode == "bm25" else {"embed", "search"})
        assert all(set(each) == {"p50", "p95", "p99"} for each in found["latency_ms"].values())
        assert found["settings"]["top_k"] == 100
    assert list_tenants(live) == ["acme", "globex"]


def test_the_pipeline_is_measured_step_by_step(command: Command, folder: str):
    result = command("eval", folder, "--mode", "pipeline", "--set", "multidoc=off", "--json")
    assert result.code == 0, result.err
    assert result.json["settings"]["multidoc"] is False
    assert result.json["settings"]["context_confidence_threshold"] == 0.5
    assert {"embed", "search", "gate", "total"} <= set(result.json["latency_ms"])
    assert 0 < result.json["ndcg@10"] <= 1


def test_for_people_there_is_a_table(command: Command, folder: str):
    result = command("eval", folder, "--mode", "bm25")
    assert result.code == 0
    for word in ("ndcg@10", "recall@100", "search (ms)", "p95", "6 questions on 8 documents"):
        assert word in result.out


def test_a_kept_tenant_is_reused_and_a_changed_corpus_has_another(
    command: Command, live: LiveDatabase, tmp_path: Path, folder: str
):
    kept = command("eval", folder, "--mode", "bm25", "--keep", "--json").json["tenant"]
    assert kept in list_tenants(live)
    assert count(live, "select count(*) from node_links") == 1
    newest = "select max(node_id) from knowledge_nodes"
    before = count(live, newest)
    again = command("eval", folder, "--mode", "bm25", "--json")
    assert again.json["tenant"] == kept
    assert count(live, newest) == before
    assert kept in list_tenants(live)  # who did not make it does not remove it
    write_folder(tmp_path / "village", documents={**DOCUMENTS, "inn": ("Inn", "Beds for sailors.")})
    other = command("eval", folder, "--mode", "bm25", "--json")
    assert other.json["tenant"] != kept
    assert other.json["corpus"] == 9
    assert list_tenants(live) == ["acme", kept, "globex"]


def test_given_vectors_are_what_is_searched(command: Command, tmp_path: Path, folder: str):
    good = write_vectors(tmp_path, good=True)
    assert command("eval", folder, "--mode", "vector", *good, "--json").json["mrr@10"] == 1
    bad = write_vectors(tmp_path, good=False)
    found = command("eval", folder, "--mode", "vector", *bad, "--json").json
    assert found["mrr@10"] < 0.6
    assert "embed" not in found["latency_ms"]
    assert found["embedder"].startswith("given@")
    np.save(tmp_path / "queries.npy", np.ones((5, 8)))
    refused = command("eval", folder, *bad)
    assert (refused.code, "5 vectors for 6 texts" in refused.err) == (1, True)


def test_settings_change_what_is_measured(command: Command, tmp_path: Path, folder: str):
    bad = write_vectors(tmp_path, good=False)
    keywords = ("--set", "vector_weight=0", "--set", "keyword_weight=1 top_k=50")
    vectors = ("--fusion", "convex", "--set", "keyword_weight=0")
    by_vector = command("eval", folder, *bad, *vectors, "--json").json
    by_keyword = command("eval", folder, *bad, *keywords, "--json").json
    assert by_keyword["ndcg@10"] > by_vector["ndcg@10"]
    assert by_keyword["settings"]["hybrid_vector_weight"] == 0
    assert by_keyword["settings"]["top_k"] == 50
    assert by_vector["settings"]["hybrid_fusion"] == "convex"


def test_a_question_that_is_a_document_does_not_find_itself(command: Command, tmp_path: Path):
    documents = {**DOCUMENTS, "q3": ("", QUESTIONS["q3"])}
    folder = str(write_folder(tmp_path / "self", documents=documents))
    found = command("eval", folder, "--mode", "bm25", "--json").json
    assert found["mrr@10"] == 1


@pytest.mark.parametrize(
    ("arguments", "code", "complaint"),
    [
        (("--set", "hybrid_fusoin=rrf"), 2, "did you mean hybrid_fusion"),
        (("--mode", "best"), 1, "The modes are bm25, vector, hybrid, pipeline"),
        (("--split", "dev"), 1, "no judgements of the split dev"),
        (("--dataset", "docs"), 1, "--dataset is for a tenant"),
        (("--tenant", "initech"), 1, "initech"),
        (("--tenant", "acme", "--embeddings", "a.npy", "b.npy"), 1, "for a scratch tenant"),
    ],
)
def test_what_cannot_work_is_one_line(
    command: Command, folder: str, arguments: tuple[str, ...], code: int, complaint: str
):
    result = command("eval", folder, *arguments)
    assert (result.code, complaint in result.err) == (code, True), result.err
    assert result.err.startswith("error: ")
    assert result.err.count("\n") == 1


def test_a_setting_without_effect_is_named(command: Command, folder: str):
    result = command("eval", folder, "--mode", "bm25", "--set", "fusion=convex", "--json")
    assert result.err == "note: hybrid_fusion has no effect in mode bm25.\n"
    assert result.json["settings"] == {"top_k": 100}


def test_a_bad_line_of_the_corpus_is_named_and_counted(
    command: Command, tmp_path: Path, folder: str
):
    with (tmp_path / "village" / "corpus.jsonl").open("a") as file:
        file.write('{"text": "no id"}\n')
    result = command("eval", folder, "--mode", "bm25", "--json")
    assert result.code == 0
    assert "corpus.jsonl, line 9: " in result.err
    assert (result.json["corpus"], result.json["rejected"]) == (8, 1)


def test_a_text_to_sql_folder_is_measured_by_fields_and_tables(command: Command, tmp_path: Path):
    (tmp_path / "tables.json").write_text(json.dumps([SHOP]))
    (tmp_path / "dev.json").write_text(json.dumps(ASKED))
    found = command("eval", str(tmp_path), "--json").json
    assert (found["queries"], found["corpus"]) == (2, 6)
    assert found["field_recall@10"] == found["recall@10"] == 1
    assert found["full_tables@10"] == found["join_complete@10"] == found["join_complete@20"] == 1


# --- a tenant that is there -------------------------------------------------------------------


def test_a_tenant_is_measured_under_its_own_settings_and_only_that_tenant(
    command: Command, live: LiveDatabase, folder: str
):
    assert command("ingest", folder, "--tenant", "acme").code == 0
    assert command("ingest", folder, "--tenant", "globex", "--dataset", "other").code == 0
    with owner_transaction(live.admin) as connection:
        connection.exec_driver_sql(
            "select write_tenant_settings('acme', '{\"hybrid_fusion\": \"convex\"}')"
        )
    acme = command("eval", folder, "--tenant", "acme", "--json").json
    globex = command("eval", folder, "--tenant", "globex", "--json").json
    assert (acme["settings"]["hybrid_fusion"], acme["corpus"]) == ("convex", 8)
    assert (globex["settings"]["hybrid_fusion"], globex["corpus"]) == ("rrf", 8)
    other = command("eval", folder, "--tenant", "acme", "--fusion", "rrf", "--json").json
    assert other["settings"]["hybrid_fusion"] == "rrf"
    nothing = command("eval", folder, "--tenant", "globex", "--dataset", "default", "--json").json
    assert nothing["ndcg@10"] == 0
    assert list_tenants(live) == ["acme", "globex"]


def test_sections_count_as_their_article(command: Command, tmp_path: Path):
    documents = tmp_path / "docs"
    documents.mkdir()
    for name, (title, text) in DOCUMENTS.items():
        (documents / f"{name}.md").write_text(f"# {title}\n\n{text}\n\n## More\n\n{text}\n")
    assert command("ingest", str(documents), "--tenant", "acme").code == 0
    judgements = {q: {f"{d}.md": 1 for d in known} for q, known in JUDGEMENTS.items()}
    folder = write_folder(tmp_path / "set", judgements=judgements)
    found = command("eval", str(folder), "--tenant", "acme", "--mode", "bm25", "--json").json
    assert found["mrr@10"] > 0.8


def test_an_evaluation_is_refused_when_its_questions_are_examples(
    command: Command, tmp_path: Path, folder: str
):
    examples = write_lines(
        tmp_path / "examples.jsonl",
        [{"question": QUESTIONS["q2"].upper() + "?", "sql": "select 1"}],
    )
    for name in ("eval", "compare"):
        result = command(name, folder, "--few-shot", str(examples))
        assert result.code == 1
        assert "1 of the questions are among the few-shot examples" in result.err
        assert "what is bread made of" in result.err
    into = ("--tenant", "acme", "--dataset", "shop")
    assert command("ingest-examples", str(examples), *into).code == 0
    result = command("eval", folder, "--tenant", "acme")
    assert (result.code, "examples of tenant acme" in result.err) == (1, True)
    assert command("eval", folder, "--tenant", "globex", "--json").code == 0


def test_a_budget_packs_what_the_pipeline_finds_and_judges_the_context(
    command: Command, tmp_path: Path
):
    longer = {name: (title, " ".join([text] * 5)) for name, (title, text) in DOCUMENTS.items()}
    folder = str(write_folder(tmp_path / "island", documents=longer))
    # Two of the documents hold the answers of q2: a small budget has room for one.
    measured = {}
    for budget in ("90", "4000"):
        changes = "context_confidence_threshold=0 multidoc=off"
        result = command("eval", folder, "--budget", budget, "--set", changes, "--json")
        assert result.code == 0, result.err
        measured[budget] = result.json
    small, large = measured["90"], measured["4000"]
    assert small["mode"] == large["mode"] == "pipeline"
    assert small["settings"]["context_token_budget"] == 90
    assert 0 < small["context_tokens"] <= 90 < large["context_tokens"]
    assert small["answer_recall@budget"] < large["answer_recall@budget"] == 1.0
    assert large["garbage"] == 0
    # Every document says its sentence five times.
    assert large["redundancy"] > 2
    refused = command("eval", folder, "--budget", "90", "--mode", "bm25")
    assert refused.code != 0
    assert "--mode pipeline" in refused.err


# --- compare ----------------------------------------------------------------------------------


def test_a_comparison_is_paired_and_written_as_a_page(
    command: Command, live: LiveDatabase, tmp_path: Path, folder: str
):
    bad = write_vectors(tmp_path, good=False)
    page = tmp_path / "report.html"
    ways = ("--a", "mode=vector", "--b", "mode=bm25")
    result = command("compare", folder, *bad, *ways, "--report", str(page), "--json")
    assert result.code == 0, result.err
    found = result.json
    assert (found["a"]["mode"], found["b"]["mode"]) == ("vector", "bm25")
    difference = found["differences"]["ndcg@10"]
    assert difference["low"] > 0
    assert difference["wins"] >= 5
    assert found["changed_most"][0]["question"] in QUESTIONS.values()
    assert "search" in found["b"]["latency_ms"]
    assert "b is better" in page.read_text()
    assert (
        command("compare", folder, *bad, *ways, "--json").json["differences"]
        == (found["differences"])
    )
    assert list_tenants(live) == ["acme", "globex"]


def test_equal_runs_are_told_to_be_equal(command: Command, folder: str):
    result = command("compare", folder, "--mode", "bm25", "--measure", "mrr@10", "--json")
    difference = result.json["differences"]["mrr@10"]
    assert (difference["difference"], difference["p_value"], difference["ties"]) == (0, 1, 6)
    assert result.json["changed_most"] == []
    table = command("compare", folder, "--mode", "bm25")
    assert "0/0/6" in table.out
    assert "Use ndcg@10" in command("compare", folder, "--measure", "fame").err


# --- tune -------------------------------------------------------------------------------------


def write_planted(folder: Path, *, questions: int) -> Path:
    """A set whose words are right and whose stored vectors are not, ready to be ingested.

    Every document has words of every question, so that the vectors decide unless kept in check.
    """
    generator = np.random.default_rng(4)
    words = [f"wort{generator.integers(10**9):x}" for _ in range(questions)]
    write_folder(
        folder,
        documents={
            f"d{n}": ("", f"The {word} of a village harbour.") for n, word in enumerate(words)
        },
        questions={f"q{n}": f"which village harbour has a {word}" for n, word in enumerate(words)},
        judgements={f"q{n}": {f"d{n}": 1} for n in range(questions)},
    )
    vectors = generator.normal(size=(questions, MODEL_DIM)).round(3)
    write_lines(
        folder / "nodes.jsonl",
        (
            {
                "external_id": f"d{n}",
                "node_type": "article",
                "content": f"The {word} of a village harbour.",
                "embedding": list(vector),
            }
            for n, (word, vector) in enumerate(zip(words, vectors, strict=True))
        ),
    )
    return folder


def test_tuning_finds_what_suits_a_tenant_and_stores_it_only_when_told(
    command: Command, live: LiveDatabase, tmp_path: Path
):
    folder = write_planted(tmp_path / "planted", questions=60)
    assert command("ingest", str(folder / "nodes.jsonl"), "--tenant", "acme").code == 0
    tune = ("tune", str(folder), "--tenant", "acme", "--json")

    first = command(*tune)
    assert first.code == 0, first.err
    held_out = first.json["held_out"]
    assert held_out["low"] > 0
    assert held_out["tuned"] > held_out["current"] + 0.1
    assert first.json["applied"] == {}
    assert command(*tune).json == first.json
    before = command("eval", str(folder), "--tenant", "acme", "--json").json

    applied = command(*tune, "--apply").json["applied"]
    assert applied["hybrid_keyword_weight"] > applied["hybrid_vector_weight"]
    assert applied["context_confidence_threshold"] < 0.5
    after = command("eval", str(folder), "--tenant", "acme", "--json").json
    assert after["ndcg@10"] > before["ndcg@10"] + 0.1
    assert after["settings"]["hybrid_fusion"] == applied["hybrid_fusion"]
    other = command("eval", str(folder), "--tenant", "globex", "--json").json
    assert other["settings"]["hybrid_keyword_weight"] == 0.4

    assert command("tune", "--undo", "--tenant", "acme", "--json").json["settings"] == {}
    restored = command("eval", str(folder), "--tenant", "acme", "--json").json
    assert restored["settings"] == before["settings"]
    assert "no earlier settings" in command("tune", "--undo", "--tenant", "acme").err


def test_tuning_refuses_a_set_too_small_to_tell(command: Command, live: LiveDatabase, folder: str):
    result = command("tune", folder)
    assert result.code == 1
    assert "6 judged questions are too few" in result.err
    assert list_tenants(live) == ["acme", "globex"]


def test_tuning_explains_itself_to_people(command: Command, tmp_path: Path):
    folder = write_planted(tmp_path / "planted", questions=45)
    nothing = write_lines(
        tmp_path / "off.jsonl", [{"question": f"why is {n} prime"} for n in range(10)]
    )
    result = command("tune", str(folder), "--unanswerable", str(nothing))
    assert result.code == 0, result.err
    assert "45 questions in 5 folds; ndcg@10 on held-out questions" in result.out
    assert "of the unanswerable questions" in result.out


@pytest.mark.parametrize("arguments", [("--apply", "set"), ("--undo",), ()])
def test_tune_says_what_is_missing(command: Command, arguments: tuple[str, ...]):
    assert command("tune", *arguments).code == 2
