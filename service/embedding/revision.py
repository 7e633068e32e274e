"""Short, stable names for the exact weights behind a model's name."""

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import Iterable, Mapping
from importlib import metadata
from pathlib import Path

_LENGTH = 12


def hash_packaged_file(distribution: str, path: Path) -> str:
    """The file's hash as recorded at installation, else computed: the same value either way."""
    recorded = _find_recorded_digest(distribution, path)
    return (recorded or _digest_file(path)).hex()[:_LENGTH]


def hash_model(tensors: Iterable[bytes], prompts: Mapping[str, str | None], max_tokens: int) -> str:
    """Changes with the weights, prompts or token limit, and with nothing else.

    Not the hub's commit, which a new README changes and a copied folder lacks, nor the names of
    the tensors, which a new release of a library may change.
    """
    used_prompts = {name: prompt for name, prompt in prompts.items() if prompt}
    digest = hashlib.sha256(json.dumps([used_prompts, max_tokens], sort_keys=True).encode())
    for tensor in sorted(hashlib.sha256(tensor).digest() for tensor in tensors):
        digest.update(tensor)
    return digest.hexdigest()[:_LENGTH]


def _find_recorded_digest(distribution: str, path: Path) -> bytes | None:
    try:
        files = metadata.files(distribution) or []
    except metadata.PackageNotFoundError:
        return None
    for file in files:
        if file.hash and file.hash.mode == "sha256" and Path(str(file.locate())) == path:
            return base64.urlsafe_b64decode(file.hash.value + "=")
    return None


def _digest_file(path: Path) -> bytes:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").digest()
