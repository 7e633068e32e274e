"""python -m benchmarks.http_load: ask a service, one line of standard input after the other.

A process of its own, and no HTTP library: the client must not be what is measured.
"""

from __future__ import annotations

import asyncio
import json
import sys
import time
from dataclasses import dataclass, field


@dataclass(slots=True)
class Load:
    """What is asked, for how long, and what came of it."""

    host: str
    port: int
    key: str
    bodies: list[str]
    end: float
    milliseconds: list[float] = field(default_factory=list)
    server_milliseconds: list[float] = field(default_factory=list)
    errors: int = 0
    next_place: int = 0

    def take_body(self) -> str | None:
        """Return the next body while there is time and one left; each is asked once."""
        if time.perf_counter() >= self.end or self.next_place >= len(self.bodies):
            return None
        self.next_place += 1
        return self.bodies[self.next_place - 1]


async def ask_in_turn(load: Load) -> None:
    """Ask one question after the other on one connection."""
    reader, writer = await asyncio.open_connection(load.host, load.port)
    while (body := load.take_body()) is not None:
        started = time.perf_counter()
        writer.write(_make_request(load, body.encode()))
        status, answer = await _read_answer(reader)
        load.milliseconds.append((time.perf_counter() - started) * 1000)
        if status == 200:
            load.server_milliseconds.append(_read_work(answer))
        else:
            load.errors += 1
    writer.close()
    await writer.wait_closed()


def _make_request(load: Load, body: bytes) -> bytes:
    head = (
        f"POST /v1/search HTTP/1.1\r\nHost: {load.host}:{load.port}\r\n"
        f"Authorization: Bearer {load.key}\r\nContent-Type: application/json\r\n"
        f"Content-Length: {len(body)}\r\n\r\n"
    )
    return head.encode() + body


async def _read_answer(reader: asyncio.StreamReader) -> tuple[int, bytes]:
    head = (await reader.readuntil(b"\r\n\r\n")).lower()
    length = int(head.partition(b"content-length:")[2].partition(b"\r\n")[0])
    return int(head.split(b" ", 2)[1]), await reader.readexactly(length)


def _read_work(answer: bytes) -> float:
    """Return what embedding and the statements of search and walk took, by the answer itself."""
    timings = {each["step"]: each["milliseconds"] for each in json.loads(answer)["timings"]}
    return sum(float(timings.get(step, 0.0)) for step in ("embed", "search", "walk"))


async def main(host: str, port: str, key: str, seconds: str, concurrency: str) -> None:
    """Ask for so many seconds on so many connections, and print what came of it as JSON."""
    bodies = sys.stdin.read().splitlines()
    end = time.perf_counter() + float(seconds)
    load = Load(host, int(port), key, bodies, end)
    started = time.perf_counter()
    await asyncio.gather(*(ask_in_turn(load) for _ in range(int(concurrency))))
    taken = time.perf_counter() - started
    figures = {
        "seconds": taken,
        "errors": load.errors,
        "milliseconds": load.milliseconds,
        "server_milliseconds": load.server_milliseconds,
    }
    print(json.dumps(figures))


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
