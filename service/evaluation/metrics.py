"""Measures of a ranking by question, computed by ir-measures, and percentiles of times."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import ir_measures
import numpy as np
from ir_measures import RR, Measure, P, R, nDCG

from service.evaluation.beir import Judgements

CUTS = (5, 10, 20, 100)
PERCENTILES = (50, 95, 99)
MEASURES: dict[str, Measure] = {
    "ndcg@10": nDCG @ 10,
    "mrr@10": RR @ 10,
    **{f"p@{cut}": P @ cut for cut in CUTS},
    **{f"recall@{cut}": R @ cut for cut in CUTS},
}
QueryValues = Mapping[str, float]


def measure_rankings(
    judgements: Judgements, rankings: Mapping[str, Sequence[str]]
) -> dict[str, dict[str, float]]:
    """Each measure's value for each judged question; one that found nothing counts as 0."""
    # Falling scores keep the order given: ties would be broken by document id.
    run = {
        query_id: {document: float(-place) for place, document in enumerate(ranking)}
        for query_id, ranking in rankings.items()
    }
    names = {measure: name for name, measure in MEASURES.items()}
    values = {name: dict.fromkeys(judgements, 0.0) for name in MEASURES}
    for metric in ir_measures.iter_calc(list(MEASURES.values()), judgements, run):
        values[names[metric.measure]][metric.query_id] = float(metric.value)
    return values


def average(values: QueryValues) -> float:
    """The mean over questions."""
    return float(np.mean(list(values.values())))


def summarise_seconds(seconds: Sequence[float]) -> dict[str, float]:
    """Percentiles of times, in milliseconds."""
    points = np.percentile(np.asarray(seconds) * 1000, PERCENTILES)
    return {
        f"p{percent}": round(float(point), 3)
        for percent, point in zip(PERCENTILES, points, strict=True)
    }
