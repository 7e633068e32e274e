"""Figures of a run as Markdown tables (pure)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

Figures = Mapping[str, Any]


def make_table(head: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    """A Markdown table; the first column is text, the others are numbers."""
    lines = [_line(head), _line(["---"] + ["---:"] * (len(head) - 1))]
    return "\n".join(lines + [_line(row) for row in rows])


def describe_contest(figures: Figures) -> str:
    """Every system: its time, its ratio to ours, and its quality."""
    rows = []
    for name, system in figures["systems"].items():
        if "absent" in system:
            rows.append([name, system["absent"], *[""] * 6])
            continue
        quality = figures["quality"][name]
        said = f"{name} {system.get('version', '')}".strip()
        rows.append(
            [
                said,
                _ms(system["p50_ms"]),
                _ms(system["p95_ms"]),
                f"{system['over_ours']:.2f}",
                f"{quality['ndcg@10']:.4f}",
                f"{quality['recall@100']:.3f}",
                *(_difference(quality["ours_minus_it"], fusion) for fusion in ("rrf", "convex")),
            ]
        )
    head = ["system", "p50", "p95", "times ours", "nDCG@10", "recall@100"]
    table = make_table([*head, "rrf minus it", "convex minus it"], rows)
    return f"{figures['documents']:,} documents, {figures['questions']:,} questions.\n\n{table}"


def describe_parts(parts: Figures) -> str:
    """When each part was measured, how long it took, and how busy the machine was before."""
    rows = [
        [name.replace("_", " "), part["when"][:16].replace("T", " "), *_describe_effort(part)]
        for name, part in parts.items()
    ]
    return make_table(["part", "measured (UTC)", "seconds", "load before"], rows)


def describe_search(figures: Figures) -> str:
    """The legs at each size, and a small tenant beside the large ones."""
    head = ["nodes", "keywords", "`ts_rank_cd`", "ratio", "vectors", "hybrid", "hybrid / legs"]
    rows = [
        [
            f"{int(size):,}",
            _ms(each["bm25_ms"]["p50"]),
            _ms(each["ts_rank_cd_ms"]["p50"]),
            each["ts_rank_cd_over_bm25"],
            _ms(each["vector_ms"]["p50"]),
            _ms(each["hybrid_ms"]["p50"]),
            each["hybrid_over_sum_of_legs"],
        ]
        for size, each in figures["sizes"].items()
    ]
    sizes = list(figures["sizes"].values())
    growth = sizes[-1]["hybrid_ms"]["p50"] / sizes[0]["hybrid_ms"]["p50"]
    beside = figures["beside"]
    return (
        f"{make_table(head, rows)}\n\n"
        f"- From the smaller to the larger tenant the hybrid search grows {growth:.1f} times.\n"
        f"- A small tenant beside them: vector leg {_ms(beside['vector_ms']['p50'])}, exact scan "
        f"of the `vector(1024)` column {_ms(beside['plain_vector_ms']['p50'])}, ratio "
        f"{beside['plain_over_ours']}; recall@20 against brute force {beside['recall_at_20']}."
    )


def describe_many_tenants(figures: Figures) -> str:
    """One small tenant alone, and among many."""
    return (
        f"A tenant of {figures['nodes_each']} nodes, hybrid search: "
        f"{_ms(figures['alone_ms']['p50'])} alone in the database, "
        f"{_ms(figures['beside_ms']['p50'])} with {figures['tenants'] - 1:,} others beside it, "
        f"ratio {figures['beside_over_alone']}."
    )


def describe_recall(figures: Figures) -> str:
    """Recall by the tenant's share of the rows."""
    shares = {name: each for name, each in figures.items() if isinstance(each, dict)}
    head = ["share of the rows", "nodes", "path", "recall@20", "after changes"]
    rows = [
        [
            name,
            f"{each['rows']:,}",
            each["path"],
            each["recall_at_20"],
            each["recall_at_20_after_changes"],
        ]
        for name, each in shares.items()
    ]
    return make_table(head, rows)


def describe_million(figures: Figures) -> str:
    """The keyword leg against ts_rank_cd."""
    return (
        f"Keyword leg {_ms(figures['bm25_ms']['p50'])}, `ts_rank_cd` "
        f"{_ms(figures['ts_rank_cd_ms']['p50'])}, ratio {figures['ts_rank_cd_over_bm25']}."
    )


def describe_upsert(figures: Figures) -> str:
    """New nodes and unchanged ones."""
    return (
        f"{figures['new_nodes_per_second']:,} new nodes a second; the same again, unchanged, "
        f"{figures['unchanged_nodes_per_second']:,}, a ratio of {figures['unchanged_ratio']}."
    )


def describe_ingest(figures: Figures) -> str:
    """Throughput with the model and with given vectors, and memory."""
    memory = ", ".join(
        f"{size} MiB for {int(nodes):,} nodes" for nodes, size in figures["peak_rss_mib"].items()
    )
    return (
        f"- With the model ({figures['documents']:,} documents): "
        f"{figures['ingest_per_second']} a second, encode alone "
        f"{figures['encode_per_second']}, share of encode {figures['share_of_encode']}.\n"
        f"- The same again, unchanged: {figures['unchanged_per_second']:,} a second.\n"
        f"- Given vectors ({figures['given_vectors']:,} nodes): "
        f"{figures['given_vectors_per_second']:,} a second, `upsert_nodes` alone "
        f"{figures['upsert_alone_per_second']:,}, a share of {figures['share_of_upsert']}.\n"
        f"- Peak memory: {memory}."
    )


def describe_pipeline(figures: Figures) -> str:
    """The whole pipeline, the plain one, and each step's price; all asked in turn."""
    ratios = figures["p95_over_plain"]
    rows = [
        [name.replace("_", " "), _ms(each["p50"]), _ms(each["p95"]), ratios.get(name, "")]
        for name, each in figures["ms"].items()
    ]
    besides = figures["default_besides_search_and_walk_ms"]
    return (
        f"{figures['nodes']:,} nodes. Besides the search statement and the walk the default "
        f"pipeline takes {_ms(besides['p50'])} p50, {_ms(besides['p95'])} p95.\n\n"
        + make_table(["", "p50", "p95", "p95 / plain"], rows)
    )


def describe_http(figures: Figures) -> str:
    """One caller and many, over HTTP and in the same process."""
    said = {
        "one caller": "alone",
        "one caller, in process": "alone_in_process",
        f"{figures['callers']} callers": "together",
        f"{figures['callers']} callers, in process": "together_in_process",
    }
    rows = [
        [name, _ms(each["p50"]), _ms(each["p95"]), each["per_second"], each["errors"]]
        for name, each in ((name, figures[key]) for name, key in said.items())
    ]
    return (
        make_table(["", "p50", "p95", "a second", "errors"], rows)
        + f"\n\nHTTP adds {figures['over_embedding_and_sql_p50_ms']} ms p50 to embedding and SQL,"
        f" and reaches {figures['throughput_share']} of the throughput in process."
        + _describe_recording(figures.get("recording"))
    )


def _describe_recording(figures: Figures | None) -> str:
    """What it costs that traces are written beside the requests; older figures lack it."""
    if figures is None:
        return ""
    return (
        f" With traces recorded p95 is {_ms(figures['p95'])}, without {_ms(figures['p95_off'])}:"
        f" {figures['p95_ratio']} times."
    )


def describe_packing(figures: Figures) -> str:
    """Answer recall and garbage by budget and way."""
    ways = figures["quality"]
    head = ["answer recall (garbage)", *(f"{int(budget):,}" for budget in ways["baseline"])]
    rows = [
        [name.replace("_", " ")]
        + [f"{each['recall']:.3f} ({each['garbage']:.2f})" for each in budgets.values()]
        for name, budgets in ways.items()
    ]
    speed = figures["speed"]
    return (
        f"{figures['questions']:,} questions, budgets in tokens.\n\n{make_table(head, rows)}\n\n"
        f"Packing {speed['candidates']:,} candidates to 8,000 tokens: {_ms(speed['p50_ms'])} p50, "
        f"{_ms(speed['p95_ms'])} p95."
    )


def describe_graph(figures: Figures) -> str:
    """PageRank's seconds, the walk's milliseconds, and what both do for ranking."""
    rank, walk = figures["pagerank"], figures["hotpotqa"]
    rows = [
        [name, each["ndcg@10"], each["recall@10"], each["recall@100"]]
        for name, each in walk["judged_on"].items()
    ]
    return (
        f"PageRank of {rank['nodes']:,} nodes and {rank['links']:,} links: "
        f"{rank['compute_seconds']} s, with reading and storing "
        f"{rank['read_compute_store_seconds']} s. The walk, its SQL included: "
        f"{_ms(walk['walk_ms']['p50'])} p50, {_ms(walk['walk_ms']['p95'])} p95.\n\n"
        + make_table(["HotpotQA", "nDCG@10", "recall@10", "recall@100"], rows)
    )


def describe_text_to_sql(figures: Figures) -> str:
    """Field recall and join-complete table recall of each leg."""
    parts = {"all databases in one": "one_dataset", "each database alone": "each_database"}
    rows = [
        [f"{said}: {mode}", *(f"{value:.3f}" for value in _pick(each).values())]
        for said, key in parts.items()
        for mode, each in figures[key].items()
    ]
    names = _pick(figures["one_dataset"]["hybrid"])
    return f"{figures['questions']:,} questions.\n\n" + make_table(["", *names], rows)


def describe_adapter(figures: Figures) -> str:
    """The adapter's call beside the bare one."""
    return (
        f"{figures['fields']:,} fields: `get_similar_fields` {_ms(figures['adapter_ms']['p50'])}, "
        f"the bare call {_ms(figures['bare_ms']['p50'])}, ratio {figures['adapter_over_bare']}."
    )


def describe_bytes(figures: Figures) -> str:
    """Bytes of each table for a node of the database."""
    sizes = figures["bytes"]
    rows = [[f"`{name}`", f"{size:,}"] for name, size in sizes["bytes_per_node"].items()]
    return (
        f"At {sizes['nodes']:,} nodes, indexes included; a 1024-d vector is 4 KB of "
        f"`knowledge_nodes`.\n\n" + make_table(["table", "bytes a node"], rows)
    )


def describe_changes(figures: Figures) -> str:
    """Every change of the pipeline on one set, beside the pipeline as it is."""
    steps = figures["steps"]
    rows: list[list[object]] = [
        ["as it is", *_rate(steps["base"]), "", "", _ms(steps["base"]["p50_ms"])]
    ]
    rows += [_describe_change(name, each) for name, each in steps.items() if name != "base"]
    head = ["", "nDCG@10", "recall@10", "gain in nDCG@10", "gain in recall@10", "time"]
    return f"{figures['questions']:,} questions.\n\n{make_table(head, rows)}"


def describe_phrasings(sets: Figures) -> str:
    """Recorded phrasings beside the question alone, on each set that has some."""
    rows: list[list[object]] = []
    for name, figures in sets.items():
        if "phrasings" not in figures:
            continue
        found = figures["phrasings"]
        said = f"{name}, {found['questions']} questions"
        rows.append([f"{said}: alone", *_rate(found["base"]), "", "", _ms(found["base"]["p50_ms"])])
        rows.append(_describe_change(f"{said}: three phrasings", found["recorded phrasings"]))
    head = ["", "nDCG@10", "recall@10", "gain in nDCG@10", "gain in recall@10", "time"]
    return make_table(head, rows)


def describe_cross_encoder(figures: Figures) -> str:
    """What a cross-encoder takes."""
    return f"{_ms(figures['p50_ms'])} for {figures['texts']} texts"


def _describe_change(name: str, figures: Figures) -> list[object]:
    gains = [_interval(figures["gain"][measure]) for measure in ("ndcg@10", "recall@10")]
    return [name, *_rate(figures), *gains, f"{figures['added_p50_ms']:+.1f} ms"]


def _rate(figures: Figures) -> tuple[str, str]:
    return f"{figures['ndcg@10']:.4f}", f"{figures['recall@10']:.4f}"


def _interval(found: Figures) -> str:
    if found["low"] == found["high"] == 0:
        return "none"
    return f"{found['mean']:+.3f} ({found['low']:+.3f} to {found['high']:+.3f})"


def _describe_effort(part: Figures) -> tuple[object, object]:
    return part.get("seconds", ""), part.get("load_before", "")


def _pick(measures: Figures) -> dict[str, float]:
    """Without the counts of tables."""
    return {
        name: value for name, value in measures.items() if not name.startswith(("tables", "joined"))
    }


def _difference(differences: Figures, fusion: str) -> str:
    found = differences[f"ContextForge {fusion}"]
    return "" if found["low"] == found["high"] == 0 else _interval(found)


def _ms(value: float) -> str:
    return f"{value:.1f} ms" if value < 100 else f"{value:.0f} ms"


def _line(cells: Iterable[object]) -> str:
    return "| " + " | ".join(str(cell) for cell in cells) + " |"
