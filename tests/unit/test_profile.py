"""Profiles: from raw cosine to the documented scale, and how one is fitted."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from service.embedding.profile import (
    Profile,
    Sample,
    find_gate,
    fit_profile,
    make_profile,
    measure_gate,
)
from service.errors import InvalidInput
from service.evaluation.profiles import EmbeddedSet, embed_folder, fit_sets
from tests.tiny_embedder import TinyEmbedder


def spread(low: float, high: float, count: int = 200) -> np.ndarray:
    return np.linspace(low, high, count)


# --- the map -----------------------------------------------------------------------------------


def test_a_profile_without_points_leaves_cosines_as_they_are():
    assert Profile().calibrate(0.37) == 0.37


def test_a_profile_is_linear_between_its_points_and_flat_beyond():
    profile = make_profile([0.2, 0.4, 0.8], [0.1, 0.5, 0.9])
    assert [profile.calibrate(cosine) for cosine in (0.0, 0.3, 0.4, 0.6, 1.0)] == pytest.approx(
        [0.1, 0.3, 0.5, 0.7, 0.9]
    )


@given(st.lists(st.floats(-1, 1), min_size=2, max_size=20))
def test_a_larger_cosine_is_never_calibrated_lower(cosines: list[float]):
    profile = make_profile([0, 0.28, 0.42, 1], [0, 0.3, 0.5, 1])
    calibrated = [profile.calibrate(cosine) for cosine in sorted(cosines)]
    assert calibrated == sorted(calibrated)


@pytest.mark.parametrize(
    ("raw", "calibrated", "complaint"),
    [
        ([0, 1], [0], "2 raw and 1 calibrated"),
        ([0, 1.5], [0, 1], "from -1 to 1"),
        ([0, float("nan")], [0, 1], "from -1 to 1"),
        ([0.5, 0.5], [0, 1], "must rise"),
        ([0, 1], [0.5, 0.2], "must not fall"),
    ],
)
def test_points_that_are_no_monotone_map_are_refused(
    raw: Sequence[float], calibrated: Sequence[float], complaint: str
):
    with pytest.raises(InvalidInput, match=complaint):
        make_profile(raw, calibrated)


# --- fitting -----------------------------------------------------------------------------------


def test_the_gate_stands_where_related_and_unrelated_questions_part():
    related, unrelated = [spread(0.5, 0.9)], [spread(0.1, 0.45)]
    gate = find_gate(related, unrelated)
    assert 0.45 < gate <= 0.5
    errors = measure_gate(related, unrelated, gate=gate)
    assert (errors.refused, errors.let_through) == (0, 0)


def test_each_set_counts_the_same_however_many_questions_it_has():
    errors = measure_gate([np.full(10, 0.2), np.full(1000, 0.8)], [np.full(5, 0.1)], gate=0.5)
    assert (errors.refused, errors.let_through) == (0.5, 0)


def test_a_fitted_profile_puts_the_marks_where_the_scale_says():
    related = Sample(best=spread(0.5, 0.9), wanted=spread(0.4, 0.8))
    profile = fit_profile([related], [spread(0.1, 0.45)])
    assert profile.calibrate(0.275) == pytest.approx(0.3, abs=0.01)
    assert profile.calibrate(0.46) == pytest.approx(0.5, abs=0.03)
    assert profile.calibrate(0.6) == pytest.approx(0.7, abs=0.01)
    assert profile.calibrate(0.792) == pytest.approx(0.95, abs=0.01)
    assert (profile.calibrate(0.0), profile.calibrate(1.0)) == (0, 1)


def test_questions_that_cannot_be_told_apart_are_refused():
    same = spread(0.3, 0.5)
    with pytest.raises(InvalidInput, match="No profile fits"):
        fit_profile([Sample(best=same, wanted=same)], [same])


# --- folders -----------------------------------------------------------------------------------


def write_folder(folder: Path, subject: Sequence[str]) -> Path:
    """A BEIR folder with a document a word; its questions are two words of one document."""
    folder.mkdir()
    words = [(word, f"{word}ing", f"{word}ed") for word in subject]
    (folder / "corpus.jsonl").write_text(
        "".join(
            json.dumps({"_id": f"d{n}", "title": a, "text": f"{b} {c}"}) + "\n"
            for n, (a, b, c) in enumerate(words)
        )
    )
    (folder / "queries.jsonl").write_text(
        "".join(
            json.dumps({"_id": f"q{n}", "text": f"{a} {b}"}) + "\n"
            for n, (a, b, _) in enumerate(words)
        )
    )
    judgements = "".join(f"q{n}\td{n}\t1\n" for n in range(len(words)))
    (folder / "qrels.tsv").write_text(f"query-id\tcorpus-id\tscore\n{judgements}")
    return folder


@pytest.fixture
def sets(tmp_path: Path) -> dict[str, EmbeddedSet]:
    embedder = TinyEmbedder(dimension=64)
    subjects = {
        "sea": ("boat", "wave", "sail", "fish", "reef", "tide", "port", "crab"),
        "home": ("door", "wall", "roof", "lamp", "desk", "sofa", "oven", "sink"),
    }
    return {
        name: embed_folder(write_folder(tmp_path / name, words), embedder)
        for name, words in subjects.items()
    }


def test_every_other_question_of_a_folder_is_kept_for_judging(sets: dict[str, EmbeddedSet]):
    assert sets["sea"].training.wanted == ((0,), (2,), (4,), (6,))
    assert sets["sea"].held_out.wanted == ((1,), (3,), (5,), (7,))


def test_folders_on_different_subjects_are_told_apart(sets: dict[str, EmbeddedSet]):
    fitted = fit_sets(sets)
    assert fitted.profile.calibrate(fitted.gate) == pytest.approx(0.5)
    assert set(fitted.refused) == {"sea", "home"}
    assert set(fitted.let_through) == {"sea of home", "home of sea"}
    assert max(fitted.refused.values()) <= 0.25
    assert max(fitted.let_through.values()) <= 0.25


def test_one_folder_alone_has_no_strangers_to_fit_to(sets: dict[str, EmbeddedSet]):
    with pytest.raises(InvalidInput, match="two sets or more"):
        fit_sets({"sea": sets["sea"]})
