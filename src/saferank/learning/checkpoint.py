"""Where a training run stands, on disk, so that an interrupted one goes on: data, never code."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save_file

from saferank.files.atomic_write import whole_file


def save_checkpoint(path: Path, tensors: dict[str, torch.Tensor], state: dict[str, Any]) -> None:
    """Write tensors and a JSON-able state in one file, whole or not at all."""
    whole = {name: tensor.contiguous() for name, tensor in tensors.items()}
    with whole_file(path) as unfinished:
        save_file(whole, unfinished, {"state": json.dumps(state)})


def load_checkpoint(path: Path) -> tuple[dict[str, torch.Tensor], dict[str, Any]] | None:
    """Return what `save_checkpoint` wrote, or None where there is nothing or it cannot be read."""
    try:
        with safe_open(path, framework="pt") as file:
            tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118 (not a dict)
            return tensors, json.loads((file.metadata() or {})["state"])
    except (SafetensorError, OSError, ValueError, KeyError):
        return None
