"""Cross-encoders of sentence-transformers: one score for a question and a text read together."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from service.embedding.protocol import FloatVector
from service.embedding.transformer import HUB_TIMEOUT_SECONDS, quiet_loading
from service.errors import ModelUnavailable

if TYPE_CHECKING:
    from sentence_transformers import CrossEncoder

_HUB_OWNER = "cross-encoder"
_LONGEST = 512 * 32  # characters; models read 512 tokens at most


class CrossEncoderModel:
    """A loaded cross-encoder; scores are logits, larger is more relevant."""

    def __init__(self, model: str) -> None:
        self._model = _load(model)

    def score(self, question: str, texts: Sequence[str]) -> FloatVector:
        """Return one score a text."""
        import torch

        pairs = [(question[:_LONGEST], text[:_LONGEST]) for text in texts]
        # Not the model's own activation: some apply a sigmoid, some do not.
        scores = self._model.predict(
            pairs, show_progress_bar=False, activation_fn=torch.nn.Identity()
        )
        return np.asarray(scores, dtype=np.float32).reshape(len(pairs), -1)[:, 0]


def _load(model: str) -> CrossEncoder:
    try:
        with quiet_loading():
            return _load_quietly(model)
    except Exception as exc:  # torch, transformers, the hub and its HTTP client share no class
        reason = str(exc).partition("\n")[0] or type(exc).__name__
        raise ModelUnavailable(
            f"The cross-encoder {model!r} cannot be loaded ({reason}).",
            hint="Name a model of the Hugging Face hub that is cached or can be downloaded, "
            "or a folder that holds one.",
        ) from exc


def _load_quietly(model: str) -> CrossEncoder:
    """From a folder or the local cache, without a word to the network; else downloaded."""
    import torch
    from huggingface_hub import model_info
    from sentence_transformers import CrossEncoder

    # As for embedders: beside another busy process two threads wait for each other.
    torch.set_num_threads(1)
    name = model if "/" in model or Path(model).is_dir() else f"{_HUB_OWNER}/{model}"
    try:
        loaded: CrossEncoder = CrossEncoder(name, local_files_only=True)
    except OSError:
        if Path(model).is_dir():
            raise
        # Without this quick question, an unknown name or no network costs a minute of retries.
        model_info(name, timeout=HUB_TIMEOUT_SECONDS)
        loaded = CrossEncoder(name)
    return loaded
