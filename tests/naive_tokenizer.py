"""The o200k tokenizer once more, slow and plain: the published pattern, and merges one by one.

It shares nothing with the one that packing counts by but the vocabulary.
"""

from __future__ import annotations

from functools import cache, lru_cache
from itertools import pairwise

import regex  # type: ignore[import-untyped]
from splintr import Tokenizer

_ENDINGS = "(?i:'s|'t|'re|'ve|'m|'ll|'d)?"
_UPPER, _LOWER = r"[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]", r"[\p{Ll}\p{Lm}\p{Lo}\p{M}]"
_PATTERN = regex.compile(
    "|".join(
        (
            rf"[^\r\n\p{{L}}\p{{N}}]?{_UPPER}*{_LOWER}+{_ENDINGS}",
            rf"[^\r\n\p{{L}}\p{{N}}]?{_UPPER}+{_LOWER}*{_ENDINGS}",
            r"\p{N}{1,3}",
            r" ?[^\s\p{L}\p{N}]+[\r\n/]*",
            r"\s*[\r\n]+",
            r"\s+(?!\S)",
            r"\s+",
        )
    )
)
_ORDINARY_TOKENS = 199_998


def count_naively(text: str) -> int:
    """How many tokens the text has."""
    return sum(_count_piece(piece.encode()) for piece in _PATTERN.findall(text))


@lru_cache(maxsize=100_000)
def _count_piece(piece: bytes) -> int:
    """Merge the pair with the lowest rank until no two neighbours are a token."""
    ranks = _read_ranks()
    parts = [piece[place : place + 1] for place in range(len(piece))]
    while len(parts) > 1:
        pairs = [ranks.get(left + right) for left, right in pairwise(parts)]
        known = [rank for rank in pairs if rank is not None]
        if not known:
            break
        place = pairs.index(min(known))
        parts[place : place + 2] = [parts[place] + parts[place + 1]]
    return len(parts)


@cache
def _read_ranks() -> dict[bytes, int]:
    """The vocabulary; the number of a token is the rank of its merge."""
    tokenizer = Tokenizer.from_pretrained("o200k_base")
    return {tokenizer.decode_token_bytes(rank): rank for rank in range(_ORDINARY_TOKENS)}
