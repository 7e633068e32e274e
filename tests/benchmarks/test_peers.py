"""Systems to compare with: the same data for all, absent ones said to be absent."""

from __future__ import annotations

import gzip
import json
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

from benchmarks.corpus import load_corpus
from benchmarks.peers import __main__ as peers
from benchmarks.peers.asked import AskedSet, read_asked, write_asked
from benchmarks.peers.plain_sql import open_plain_database, open_plain_sql
from benchmarks.peers.protocol import WARM_UP, ask_all
from benchmarks.peers.sets import read_debian
from tests.live_database import LiveDatabase

ROOT = Path(__file__).resolve().parents[2]
WORDS = {"apple": "red apple pie", "pear": "green pear tart", "sea": "blue sea"}


def make_asked() -> AskedSet:
    return AskedSet(
        names=tuple(WORDS),
        titles=("",) * len(WORDS),
        bodies=tuple(WORDS.values()),
        vectors=np.eye(3, dtype=np.float32),
        questions=("pear",),
        question_vectors=np.array([[0.0, 0.6, 0.8]], dtype=np.float32),
    )


def write_package_set(folder: Path) -> Path:
    place = folder / "debian_packages"
    place.mkdir()
    rows = [{"_id": name, "title": name, "text": text} for name, text in WORDS.items()]
    with gzip.open(place / "corpus.jsonl.gz", "wt", encoding="utf-8") as file:
        file.writelines(json.dumps(row) + "\n" for row in rows)
    questions = [{"_id": "1", "text": "green pear tart"}, {"_id": "2", "text": "not there at all"}]
    (place / "queries.jsonl").write_text("".join(json.dumps(each) + "\n" for each in questions))
    np.save(place / "corpus_minilm.npy", np.eye(3, 8, dtype=np.float16))
    np.save(place / "queries_minilm.npy", np.eye(2, 8, dtype=np.float16))
    return place


def test_a_set_is_read_by_another_process_as_it_was_written(tmp_path: Path):
    asked = make_asked()
    write_asked(asked, tmp_path)
    read = read_asked(tmp_path)
    assert (read.names, read.texts, read.questions) == (asked.names, asked.texts, asked.questions)
    assert np.array_equal(read.vectors, asked.vectors)
    assert np.array_equal(read.question_vectors, asked.question_vectors)


def test_a_document_answers_the_span_it_holds(tmp_path: Path):
    write_package_set(tmp_path)
    assert read_debian(tmp_path).judgements == {"1": {"pear": 1}}


def test_the_same_seed_gives_the_same_data(tmp_path: Path):
    place = write_package_set(tmp_path)
    one, same, other = (load_corpus(place, seed=seed) for seed in (7, 7, 8))
    assert np.array_equal(one.embeddings(0, 9), same.embeddings(0, 9))
    assert one.drafts(0, 9) == same.drafts(0, 9)
    assert not np.array_equal(one.embeddings(0, 9), other.embeddings(0, 9))


def test_a_peer_that_is_not_installed_is_absent(monkeypatch: pytest.MonkeyPatch, tmp_path: Path):
    open_peer = peers.PEERS["txtai"][1]
    monkeypatch.setitem(peers.PEERS, "txtai", ("no_such_package", open_peer))
    assert peers.run_peer("txtai", tmp_path) == {"absent": "no-such-package is not installed"}


def test_the_interpreter_of_the_peers_needs_nothing_of_the_service():
    statement = (
        "import sys, benchmarks.peers.__main__;"
        "print([name for name in sys.modules if name.split('.')[0] in ('service', 'sqlalchemy')])"
    )
    done = subprocess.run(
        [sys.executable, "-c", statement], cwd=ROOT, check=True, capture_output=True, text=True
    )
    assert done.stdout.strip() == "[]"


def test_every_question_is_asked_once_after_warming_up():
    seen: list[tuple[str, int]] = []

    class Remembering:
        def search(self, text: str, vector: object, top_k: int) -> list[str]:
            seen.append((text, top_k))
            time.sleep(0.002)
            return ["a"]

    questions = tuple(f"q{number}" for number in range(WARM_UP + 5))
    vectors = np.zeros((len(questions), 3), dtype=np.float32)
    asked = AskedSet((), (), (), np.zeros((0, 3), dtype=np.float32), questions, vectors)
    answers = ask_all(Remembering(), asked, top_k=20)
    assert seen[WARM_UP:] == [(question, 20) for question in questions]
    assert answers.rankings == (("a",),) * len(questions)
    assert 2 <= answers.p50_ms <= answers.p95_ms


def test_plain_sql_puts_what_both_legs_found_first(database: LiveDatabase):
    asked = make_asked()
    with (
        open_plain_database(database.admin) as engine,
        open_plain_sql(engine, asked) as searcher,
    ):
        found = searcher.search(asked.questions[0], asked.question_vectors[0], 3)
        assert searcher.search("apple or pear", asked.question_vectors[0], 1) == ["pear"]
    # By vector alone "sea" is nearest; "pear" is second there and first by words.
    assert found == ["pear", "sea", "apple"]
