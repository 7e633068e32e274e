"""A second opinion on the order: a cross-encoder that reads question and text together, or MMR."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from threading import Lock

from scipy.special import expit

from service.embedding.cross_encoder import CrossEncoderModel
from service.errors import InvalidInput, ModelUnavailable
from service.retrieval.diversity import select_diverse
from service.retrieval.request import Frame
from service.retrieval.trace import Drop, StepResult
from service.types import Candidate

logger = logging.getLogger(__name__)


class CrossEncoders:
    """Cross-encoders, loaded when first used; one that cannot be loaded is not tried again."""

    def __init__(self, allowed: Sequence[str]) -> None:
        """The first allowed model is the default."""
        self.allowed = tuple(allowed)
        self._models: dict[str, CrossEncoderModel | None] = {}
        self._lock = Lock()

    def find(self, model: str | None = None) -> CrossEncoderModel | None:
        """Return a model, or None with one warning where it cannot be loaded."""
        name = self.allowed[0] if model is None else model
        if name not in self.allowed:
            raise InvalidInput(
                f"The cross-encoder {name!r} is not allowed.",
                hint=f"Allowed by RERANKER_MODELS: {', '.join(self.allowed)}.",
            )
        with self._lock:
            if name not in self._models:
                self._models[name] = self._load(name)
            return self._models[name]

    def _load(self, name: str) -> CrossEncoderModel | None:
        try:
            return CrossEncoderModel(name)
        except ModelUnavailable as exc:
            logger.warning("Results stay in their order: %s", exc)
            return None


def rerank(
    candidates: Sequence[Candidate], *, frame: Frame, cross_encoders: CrossEncoders
) -> StepResult:
    """Reorder as the options say; without a cross-encoder the order stays, or mmr decides."""
    options = frame.options
    by_mmr = partial(rerank_by_mmr, alpha=options.mmr_alpha, top_k=options.rerank_topk)
    if options.reranker == "mmr":
        return by_mmr(candidates)
    model = cross_encoders.find()
    if model is not None:
        return rerank_by_cross_encoder(
            candidates, question=frame.request.text, model=model, top_k=options.rerank_topk
        )
    if options.rerank_fallback == "mmr":
        return replace(by_mmr(candidates), fallback="cross-encoder: no model, mmr instead")
    return StepResult(list(candidates), fallback="cross-encoder: no model, order unchanged")


def rerank_by_cross_encoder(
    candidates: Sequence[Candidate], *, question: str, model: CrossEncoderModel, top_k: int
) -> StepResult:
    """Reorder by the model's ce_score and keep the best; the score becomes its sigmoid."""
    scores = model.score(question, [_text(each) for each in candidates])
    scored = [
        replace(candidate, ce_score=float(score), score=float(expit(score)))
        for candidate, score in zip(candidates, scores, strict=True)
    ]
    scored.sort(key=lambda each: (-(each.ce_score or 0.0), each.node.node_id))
    drops = (
        Drop(each.node.node_id, f"beyond the best {top_k} of the cross-encoder")
        for each in scored[top_k:]
    )
    return StepResult(scored[:top_k], tuple(drops))


def rerank_by_mmr(candidates: Sequence[Candidate], *, alpha: float, top_k: int) -> StepResult:
    """Reorder by maximal marginal relevance and keep the first."""
    chosen = select_diverse(candidates, alpha=alpha, top_k=top_k)
    kept = {each.node.node_id for each in chosen}
    drops = (
        Drop(each.node.node_id, f"beyond the {top_k} that add most")
        for each in candidates
        if each.node.node_id not in kept
    )
    return StepResult(chosen, tuple(drops))


def _text(candidate: Candidate) -> str:
    node = candidate.node
    return " ".join(part for part in (node.title, node.header, node.summary, node.content) if part)
