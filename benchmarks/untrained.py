"""A cross-encoder of the usual size without training: it costs what a trained one costs."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from statistics import median

from service.embedding.cross_encoder import CrossEncoderModel
from service.embedding.shipped import find_shipped_files

LAYERS, WIDTH, HEADS = 6, 384, 12  # those of ms-marco-MiniLM-L-6
LONGEST = 512


def time_cross_encoder(question: str, texts: Sequence[str], *, rounds: int = 5) -> float:
    """Milliseconds to score so many texts, p50."""
    with tempfile.TemporaryDirectory(prefix="cf-cross-") as folder:
        model = CrossEncoderModel(str(write_untrained(Path(folder))))
    model.score(question, texts)
    taken = []
    for _ in range(rounds):
        started = time.perf_counter()
        model.score(question, texts)
        taken.append((time.perf_counter() - started) * 1000)
    return round(median(taken), 1)


def write_untrained(folder: Path) -> Path:
    """Write a model with random weights and the tokenizer of the shipped embedder."""
    from sentence_transformers import CrossEncoder
    from transformers import AutoTokenizer, BertConfig, BertForSequenceClassification

    tokenizer = AutoTokenizer.from_pretrained(find_shipped_files().folder, local_files_only=True)
    config = BertConfig(
        vocab_size=len(tokenizer),
        hidden_size=WIDTH,
        num_hidden_layers=LAYERS,
        num_attention_heads=HEADS,
        intermediate_size=4 * WIDTH,
        max_position_embeddings=LONGEST,
    )
    config.num_labels = 1
    parts = folder / "parts"
    BertForSequenceClassification(config).save_pretrained(parts)
    tokenizer.save_pretrained(parts)
    place = folder / "model"
    model = CrossEncoder(str(parts), max_length=LONGEST, local_files_only=True)
    model.save_pretrained(str(place))
    return place
