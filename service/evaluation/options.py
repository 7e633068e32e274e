"""What is evaluated: a mode of retrieval with its settings, read from `name=value` texts."""

from __future__ import annotations

import difflib
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, get_args

from service.db.tenant_settings import TENANT_SETTINGS
from service.errors import InvalidInput, SettingsError
from service.settings import Settings, override_settings
from service.types import Json

Mode = Literal["bm25", "vector", "hybrid", "pipeline"]

MODES: tuple[Mode, ...] = get_args(Mode)
# A search returns at most this many nodes; its legs are five times as deep as it asks for.
MOST_HITS = 1000
LEAST_DEPTH = 100
ALIASES = {
    "fusion": "hybrid_fusion",
    "rrf_k": "hybrid_rrf_k",
    "keyword_weight": "hybrid_keyword_weight",
    "bm25_weight": "hybrid_keyword_weight",
    "vector_weight": "hybrid_vector_weight",
    "budget": "context_token_budget",
}
_HYBRID = ("hybrid_keyword_weight", "hybrid_vector_weight", "hybrid_fusion", "hybrid_rrf_k")
_IN_EFFECT: dict[Mode, tuple[str, ...]] = {
    "bm25": (),
    "vector": (),
    "hybrid": _HYBRID,
    "pipeline": TENANT_SETTINGS,
}
_SWITCH = {"on": True, "1": True, "true": True, "off": False, "0": False, "false": False}
_BETWEEN = re.compile(r"[\s,;]+")


@dataclass(frozen=True, slots=True)
class Retrieval:
    """A way to retrieve: mode and settings, how many documents, how deep each leg looks.

    multidoc: whether the pipeline keeps to its few best documents, as it does in service.
    packed: whether what it finds is packed into the token budget, and judged as a context.
    """

    mode: Mode
    settings: Settings
    top_k: int = 100
    depth: int | None = None
    multidoc: bool = True
    packed: bool = False

    @property
    def hits(self) -> int:
        """How many nodes a hybrid search is asked for, so that its legs are deep enough."""
        return max(self.top_k, -(-self.depth // 5) if self.depth else 0)

    @property
    def leg_depth(self) -> int:
        """How many nodes each leg of a hybrid search gives."""
        return max(LEAST_DEPTH, 5 * self.hits)

    def describe(self) -> dict[str, Json]:
        """The settings that have an effect in this mode, by name."""
        shown: dict[str, Json] = {name: getattr(self.settings, name) for name in self._in_effect}
        shown["top_k"] = self.top_k
        if self.mode == "hybrid":
            shown["depth"] = self.leg_depth
        if self.mode == "pipeline":
            shown["multidoc"] = self.multidoc
        return shown

    @property
    def _in_effect(self) -> tuple[str, ...]:
        names = _IN_EFFECT[self.mode]
        if self.mode == "hybrid" and self.settings.hybrid_fusion == "convex":
            return tuple(name for name in names if name != "hybrid_rrf_k")
        return names


def parse_assignments(texts: Sequence[str]) -> dict[str, str]:
    """Names and values of texts such as "fusion=convex top_k=50"; the last of a name counts."""
    found: dict[str, str] = {}
    for part in (part for text in texts for part in _BETWEEN.split(text) if part):
        name, separator, value = part.partition("=")
        if not separator or not name or not value:
            raise InvalidInput(
                f'"{part}" is no setting with a value.', hint='Write "hybrid_fusion=convex".'
            )
        known = name.lower()
        found[ALIASES.get(known, known)] = value
    return found


def change_retrieval(retrieval: Retrieval, assignments: Mapping[str, str]) -> Retrieval:
    """Return the retrieval with other settings; an unknown name is refused with what is near."""
    values = dict(assignments)
    mode = _read_mode(values.pop("mode", retrieval.mode))
    top_k = _read_count(values.pop("top_k", None), "top_k", default=retrieval.top_k)
    depth = _read_count(values.pop("depth", None), "depth", default=retrieval.depth or 0) or None
    multidoc = _read_switch(values.pop("multidoc", None), "multidoc", default=retrieval.multidoc)
    for name in values:
        _refuse_unknown(name)
    settings = override_settings(retrieval.settings, values, place="--set")
    packed = retrieval.packed or "context_token_budget" in values
    changed = Retrieval(mode, settings, top_k, depth, multidoc, packed and mode == "pipeline")
    _check_depth(changed)
    return changed


def list_idle(retrieval: Retrieval, assignments: Mapping[str, str]) -> list[str]:
    """The names given that have no effect in this mode."""
    return [name for name in assignments if name not in {*retrieval.describe(), "mode", "depth"}]


def _read_mode(text: str) -> Mode:
    for mode in MODES:
        if text == mode:
            return mode
    raise InvalidInput(f'There is no mode "{text}".', hint=f"The modes are {', '.join(MODES)}.")


def _read_count(text: str | None, name: str, *, default: int) -> int:
    if text is None:
        return default
    if not text.isascii() or not text.isdigit() or int(text) < 1:
        raise InvalidInput(f"{name} must be a whole number, at least 1, not {text!r}.")
    return int(text)


def _read_switch(text: str | None, name: str, *, default: bool) -> bool:
    if text is None:
        return default
    if text.lower() not in _SWITCH:
        raise InvalidInput(f"{name} must be on or off, not {text!r}.")
    return _SWITCH[text.lower()]


def _refuse_unknown(name: str) -> None:
    if name in TENANT_SETTINGS:
        return
    known = [*TENANT_SETTINGS, *ALIASES, "mode", "top_k", "depth", "multidoc"]
    near = difflib.get_close_matches(name, known, n=3, cutoff=0.5)
    meant = f"; did you mean {' or '.join(near)}?" if near else "."
    raise SettingsError(
        f'"{name}" is not a setting of retrieval{meant}', hint=f"There are {', '.join(known)}."
    )


def _check_depth(retrieval: Retrieval) -> None:
    if retrieval.top_k > MOST_HITS or retrieval.hits > MOST_HITS:
        raise InvalidInput(
            "A search returns at most 1000 nodes, from legs of at most 5000.",
            hint="Use a top_k of at most 1000 and a depth of at most 5000.",
        )
    if retrieval.depth is not None and retrieval.depth < max(LEAST_DEPTH, 5 * retrieval.top_k):
        raise InvalidInput(
            f"depth is {retrieval.depth}, but the legs of a search for {retrieval.top_k} nodes are "
            f"at least {max(LEAST_DEPTH, 5 * retrieval.top_k)} deep.",
            hint="Use a larger depth or a smaller top_k.",
        )
