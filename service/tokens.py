"""How long a text is for a model: tokens of its vocabulary, counted offline."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache

CountTokens = Callable[[str], int]

OWN_VOCABULARY = "o200k_base"
"""The one that ingestion counts by."""

# The longer beginnings first: gpt-4o is no gpt-4.
_VOCABULARIES = {
    "gpt-4o": "o200k_base",
    "gpt-4.": "o200k_base",
    "gpt-5": "o200k_base",
    "chatgpt-4o": "o200k_base",
    "o1": "o200k_base",
    "o3": "o200k_base",
    "o4": "o200k_base",
    "o200k_base": "o200k_base",
    "gpt-4": "cl100k_base",
    "gpt-3.5": "cl100k_base",
    "cl100k_base": "cl100k_base",
}


def count_tokens(text: str) -> int:
    """How many o200k tokens the text has; special-token spellings count as ordinary text."""
    return load_counter(OWN_VOCABULARY)(text)


def find_vocabulary(model: str) -> str | None:
    """The vocabulary of a model by the beginning of its name; None for one that is not known."""
    name = model.strip().lower()
    return next((known for start, known in _VOCABULARIES.items() if name.startswith(start)), None)


@cache
def load_counter(vocabulary: str) -> CountTokens:
    """The counter of a vocabulary; loading takes a moment, so it is kept."""
    from splintr import Tokenizer

    encode = Tokenizer.from_pretrained(vocabulary).encode_ordinary
    return lambda text: len(encode(text))
