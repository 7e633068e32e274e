"""Names that QueryForge uses for the same arguments (pure)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import wraps
from inspect import signature
from typing import ParamSpec, TypedDict, TypeVar

from service.errors import InvalidInput

P = ParamSpec("P")
T = TypeVar("T")


class OtherNames(TypedDict, total=False):
    """Other names of query (or query_text), dataset_name and top_k."""

    question: str
    document_name: str
    top_n: int


_OTHER_NAMES: Mapping[str, tuple[str, ...]] = {
    "question": ("query", "query_text"),
    "document_name": ("dataset_name",),
    "top_n": ("top_k",),
}


def known_by_other_names(method: Callable[P, T]) -> Callable[P, T]:
    """Let a method be called by the names of OtherNames, and by no others than it has.

    The method takes them as `**_: Unpack[OtherNames]`, for type checkers alone.
    """
    own = [name for name in signature(method).parameters if name != "_"]
    names = {other: name for other, known in _OTHER_NAMES.items() for name in known if name in own}

    @wraps(method)
    def call(*args: P.args, **kwargs: P.kwargs) -> T:
        for given in [name for name in kwargs if name not in own]:
            name = names.get(given)
            if name is None:
                raise TypeError(f"{method.__name__}() has no argument {given!r}")
            if name in kwargs:
                raise InvalidInput(f"{given} is another name of {name}: give one of them.")
            kwargs[name] = kwargs.pop(given)
        return method(*args, **kwargs)

    return call
