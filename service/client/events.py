"""An answer as it is written: server-sent events become typed ones (pure)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from service.api.models.answer import (
    CitationEvent,
    ErrorEvent,
    MessageEvent,
    SearchResultsEvent,
    ShownAnswer,
)
from service.errors import ServiceUnreachable

AnswerEvent = SearchResultsEvent | MessageEvent | CitationEvent | ErrorEvent | ShownAnswer
"""What is yielded, in this order; an answer or an error is the last."""

_SHAPES: Mapping[bytes, type[AnswerEvent]] = {
    b"search_results": SearchResultsEvent,
    b"message": MessageEvent,
    b"citation": CitationEvent,
    b"error": ErrorEvent,
    b"final_answer": ShownAnswer,
}


class EventReader:
    """Reads events from bytes as they come in.

    Lines end where the format says: httpx's own lines end at characters that JSON may hold, too.
    """

    def __init__(self) -> None:
        self._unread = b""
        self._name = b""
        self._data: list[bytes] = []
        self._last: AnswerEvent | None = None

    def feed(self, received: bytes) -> Iterator[AnswerEvent]:
        """Yield the events that are complete by now; those of an unknown name are left out."""
        *lines, self._unread = (self._unread + received).split(b"\n")
        for line in lines:
            event = self._take(line.removesuffix(b"\r"))
            if event is not None:
                self._last = event
                yield event

    def finish(self) -> None:
        """Refuse a stream that ended before its answer."""
        if not isinstance(self._last, ShownAnswer | ErrorEvent):
            raise ServiceUnreachable("The answer broke off in the middle.", hint="Ask again.")

    def _take(self, line: bytes) -> AnswerEvent | None:
        if not line:
            return self._complete()
        name, _, value = line.partition(b":")
        value = value.removeprefix(b" ")
        if name == b"event":
            self._name = value
        elif name == b"data":
            self._data.append(value)
        return None

    def _complete(self) -> AnswerEvent | None:
        shape, data = _SHAPES.get(self._name), b"\n".join(self._data)
        self._name, self._data = b"", []
        return None if shape is None else shape.model_validate_json(data)
