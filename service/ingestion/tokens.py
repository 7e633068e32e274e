"""How long a text is for a model: o200k tokens, counted offline."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache


def count_tokens(text: str) -> int:
    """How many o200k tokens the text has; special-token spellings count as ordinary text."""
    return len(_encode()(text))


@cache
def _encode() -> Callable[[str], list[int]]:
    from splintr import Tokenizer

    return Tokenizer.from_pretrained("o200k_base").encode_ordinary
