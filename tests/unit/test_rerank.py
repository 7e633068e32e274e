"""Reranking with a tiny real cross-encoder, written to disk by the test."""

from __future__ import annotations

import logging
from pathlib import Path

import pytest

from service.embedding.cross_encoder import CrossEncoderModel
from service.errors import InvalidInput, ModelUnavailable
from service.retrieval.graph import rank_by_graph
from service.retrieval.rerank import CrossEncoders, rerank_by_cross_encoder, rerank_by_mmr
from tests.candidates import ids, make_candidate, with_cosine

WORDS = ("[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "parcel", "locker", "tracking", "invoice")


@pytest.fixture(scope="session")
def model_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A BERT of one layer that scores a pair, with a vocabulary of four words."""
    import torch
    from sentence_transformers import CrossEncoder
    from transformers import BertConfig, BertForSequenceClassification, BertTokenizer

    torch.manual_seed(7)
    parts = tmp_path_factory.mktemp("parts")
    (parts / "vocab.txt").write_text("\n".join(WORDS))
    config = BertConfig(
        vocab_size=len(WORDS),
        hidden_size=16,
        num_hidden_layers=1,
        num_attention_heads=2,
        intermediate_size=16,
        max_position_embeddings=64,
    )
    config.num_labels = 1
    BertForSequenceClassification(config).save_pretrained(parts)
    BertTokenizer(str(parts / "vocab.txt")).save_pretrained(parts)
    folder = tmp_path_factory.mktemp("tiny") / "cross-encoder"
    CrossEncoder(str(parts), max_length=64, local_files_only=True).save_pretrained(str(folder))
    return folder


@pytest.fixture
def model(model_folder: Path) -> CrossEncoderModel:
    found = CrossEncoders([str(model_folder)]).find()
    assert found is not None
    return found


def test_candidates_come_back_in_the_order_of_the_models_scores(model: CrossEncoderModel):
    pool = [
        make_candidate(place, 0.5, title="", content=word)
        for place, word in enumerate(("parcel tracking", "invoice", "parcel locker"), start=1)
    ]
    scores = model.score("where is my parcel", [each.node.content for each in pool])
    assert len(set(scores.tolist())) == 3
    result = rerank_by_cross_encoder(pool, question="where is my parcel", model=model, top_k=2)
    best = [pool[place].node.node_id for place in scores.argsort()[::-1]]
    assert ids(result.candidates) == best[:2]
    assert [drop.node_id for drop in result.drops] == best[2:]
    for candidate in result.candidates:
        assert candidate.ce_score == pytest.approx(float(scores[candidate.node.node_id - 1]))
        assert 0 < candidate.score < 1


def test_the_graph_blend_takes_the_models_word_for_the_similarity(model: CrossEncoderModel):
    result = rerank_by_cross_encoder(
        [make_candidate(1, cosine=0.1)], question="where", model=model, top_k=1
    )
    [blended] = rank_by_graph(result.candidates, {1: 0.5})
    assert blended.score == pytest.approx(0.7 * result.candidates[0].score + 0.3 * 0.5)


def test_a_long_text_and_an_empty_one_are_scored_too(model: CrossEncoderModel):
    assert len(model.score("parcel", ["parcel " * 100_000, ""])) == 2


def test_a_model_that_cannot_load_is_tried_once_and_warned_of_once(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
):
    from service.retrieval import rerank

    attempts: list[str] = []

    def load(name: str) -> CrossEncoderModel:
        attempts.append(name)
        return CrossEncoderModel(name)

    monkeypatch.setattr(rerank, "CrossEncoderModel", load)
    encoders = CrossEncoders([str(tmp_path)])
    with caplog.at_level(logging.WARNING, logger="service.retrieval.rerank"):
        assert [encoders.find() for _ in range(3)] == [None] * 3
    assert len(attempts) == 1
    assert len(caplog.records) == 1


def test_only_allowed_models_are_loaded(model_folder: Path):
    encoders = CrossEncoders(["ms-marco-MiniLM-L-12-v2"])
    with pytest.raises(InvalidInput, match="is not allowed"):
        encoders.find(str(model_folder))


def test_a_folder_without_a_model_says_what_it_is(tmp_path: Path):
    with pytest.raises(ModelUnavailable, match=f"cross-encoder '{tmp_path}' cannot be loaded"):
        CrossEncoderModel(str(tmp_path))


def test_mmr_names_what_it_leaves_out():
    pool = [
        make_candidate(1, 1.0, embedding=with_cosine(1.0)),
        make_candidate(2, 0.9, embedding=with_cosine(0.99)),
    ]
    result = rerank_by_mmr(pool, alpha=0.5, top_k=1)
    assert ids(result.candidates) == [1]
    assert result.drops[0].node_id == 2
