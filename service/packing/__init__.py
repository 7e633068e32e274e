"""From candidates to a context that spends a token budget where it adds most (pure)."""

from service.packing.assemble import pack
from service.packing.rules import PackingRules, make_rules
from service.packing.types import ItemTrace, Pack, PackedBlock, PackedItem, PackTrace

__all__ = [
    "ItemTrace",
    "Pack",
    "PackTrace",
    "PackedBlock",
    "PackedItem",
    "PackingRules",
    "make_rules",
    "pack",
]
