"""python -m benchmarks.peers NAME FOLDER: load one peer, ask it everything, print JSON.

Run by benchmarks.peers.contest, in an interpreter that has the peer's package.
"""

from __future__ import annotations

import json
import sys
import tempfile
import time
from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import asdict
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path

from benchmarks.peers import lance, langchain, txt
from benchmarks.peers.asked import AskedSet, read_asked
from benchmarks.peers.protocol import DEEP, TOP_K, Searcher, ask_all

Open = Callable[[AskedSet, str], AbstractContextManager[Searcher]]

# Name, its package, and how it is loaded.
PEERS: dict[str, tuple[str, Open]] = {
    "LanceDB": (lance.PACKAGE, lance.open_lance),
    "LanceDB, vectors indexed": (lance.PACKAGE, lance.open_lance_indexed),
    "txtai": (txt.PACKAGE, txt.open_txtai),
    "langchain-postgres": (langchain.PACKAGE, langchain.open_langchain),
}


def run_peer(name: str, folder: Path) -> dict[str, object]:
    """Everything one peer answered, or that it is not installed."""
    package, open_peer = PEERS[name]
    if find_spec(package) is None:
        return {"absent": f"{package.replace('_', '-')} is not installed"}
    asked = read_asked(folder)
    start = time.perf_counter()
    with tempfile.TemporaryDirectory(prefix="cf-peer-") as place, open_peer(asked, place) as peer:
        loaded = time.perf_counter() - start
        answers = {str(top_k): ask_all(peer, asked, top_k=top_k) for top_k in (TOP_K, DEEP)}
        return {
            "version": version(package.replace("_", "-")),
            "load_seconds": round(loaded, 1),
            "answers": {top_k: asdict(each) for top_k, each in answers.items()},
        }


if __name__ == "__main__":
    print(json.dumps(run_peer(sys.argv[1], Path(sys.argv[2]))))
