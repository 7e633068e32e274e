"""What a pack is made by: the settings that concern it (pure)."""

from __future__ import annotations

from dataclasses import dataclass

from service.errors import SettingsError
from service.settings import Settings
from service.tokens import OWN_VOCABULARY, find_vocabulary


@dataclass(frozen=True, slots=True)
class PackingRules:
    """Caps, weights and the vocabulary that counts; the defaults are those of the settings."""

    per_doc_cap: int = 2
    per_section_cap: int = 1
    novelty_alpha: float = 0.5
    answerability_bonus: float = 0.1
    section_reunification: bool = True
    vocabulary: str = OWN_VOCABULARY


def make_rules(settings: Settings) -> PackingRules:
    """Return the rules the settings state; refuse a model whose tokens cannot be counted."""
    vocabulary = find_vocabulary(settings.tokenizer_model)
    if vocabulary is None:
        raise SettingsError(
            f"TOKENIZER_MODEL {settings.tokenizer_model!r} has no vocabulary here.",
            hint="Use a model of the gpt-4o, gpt-4, gpt-5 or o1 families, or o200k_base.",
        )
    return PackingRules(
        per_doc_cap=settings.packing_per_doc_cap,
        per_section_cap=settings.packing_per_section_cap,
        novelty_alpha=settings.packing_novelty_alpha,
        answerability_bonus=settings.packing_answerability_bonus,
        section_reunification=settings.section_reunification,
        vocabulary=vocabulary,
    )
