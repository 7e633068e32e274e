"""Both clients behind one face, so that a test holds for either."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator
from inspect import isawaitable
from typing import Any

from service.client import AsyncClient, Client


class DrivenClient:
    """Calls a method of a client and returns what comes of it; what it yields as a list."""

    def __init__(self, client: Client | AsyncClient, runner: asyncio.Runner) -> None:
        self._client = client
        self._runner = runner

    def __getattr__(self, name: str) -> Any:
        method = getattr(self._client, name)

        def call(*args: object, **options: object) -> Any:
            result = method(*args, **options)
            if isinstance(result, AsyncIterator):
                result = _collect(result)
            if isawaitable(result):
                return self._runner.run(_wait(result))
            return list(result) if isinstance(result, Iterator) else result

        return call


async def _wait(result: Any) -> Any:
    return await result


async def _collect(items: AsyncIterator[Any]) -> list[Any]:
    return [item async for item in items]
