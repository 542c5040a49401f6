"""A policy as a folder of weights, feature schema and manifest: data only, nothing in it is executed on reading."""

import hashlib
import json
import logging
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from safetensors import SafetensorError
from safetensors.numpy import load as arrays_of
from safetensors.numpy import save as bytes_of

from saferank import __version__
from saferank.engine.errors import DataError, UsageError
from saferank.features.schema import FeatureSchema
from saferank.files.atomic_write import check_parents, whole_folder
from saferank.files.json_format import FileFormat
from saferank.policy.policy import Policy, ScorerKind
from saferank.policy.scorers.parts import needed_weights

WEIGHTS, SCHEMA, MANIFEST = "weights.safetensors", "schema.json", "manifest.json"
AGAIN = "copy the folder again, or fit anew"
FORMAT = FileFormat("saferank-model", 1, "fit", AGAIN)

LOGGER = logging.getLogger(__name__)


def write_policy(policy: Policy, folder: Path) -> None:
    """Write the folder, atomically; a model that is already there is replaced."""
    check_model_folder(folder)
    files = {WEIGHTS: bytes_of(dict(policy.weights)), SCHEMA: _json_bytes(policy.schema.as_json())}
    manifest = {
        "saferank": __version__,
        "scorer": {"name": policy.kind.name, "settings": policy.kind.settings},
        "examination": policy.examination.tolist(),
        "files": {name: {"bytes": len(text), "sha256": _sha256(text)} for name, text in files.items()},
    }
    ours = FORMAT.marked(manifest)
    files[MANIFEST] = _json_bytes(ours | policy.manifest | ours)
    with whole_folder(folder) as unfinished:
        for name, text in files.items():
            (unfinished / name).write_bytes(text)
    LOGGER.info("Wrote the model %s", folder)


def read_policy(folder: Path) -> Policy:
    """Read what `write_policy` wrote. Checks format, version, hashes, and the name and shape of every tensor."""
    if not folder.is_dir():
        raise DataError("there is no such folder; `saferank fit` writes one.", file=folder)
    manifest = FORMAT.read(folder / MANIFEST)
    weights_text, schema_text = (_read_file(folder / name, manifest) for name in (WEIGHTS, SCHEMA))
    try:
        schema = FeatureSchema.from_json(json.loads(schema_text))
    except ValueError as error:
        raise DataError(f"is not a feature schema ({error}); {AGAIN}.", file=folder / SCHEMA) from error
    try:
        described = manifest["scorer"]
        kind = ScorerKind(described["name"], {**described["settings"]})
        needed_weights(kind.name, kind.settings, len(schema.columns))
        examination = np.array(manifest["examination"], np.float64)
        policy = Policy(kind, _weights(weights_text, folder / WEIGHTS), schema, examination, manifest)
    except (KeyError, TypeError, ValueError, AttributeError, UsageError) as error:
        message = f"does not describe a scorer and the examination of its ranks ({error!r}); {AGAIN}."
        raise DataError(message, file=folder / MANIFEST) from error
    if (schema.base is not None) != (kind.settings.get("start") == "column"):
        raise DataError(f"has a different base column than the scorer; {AGAIN}.", file=folder / SCHEMA)
    try:
        _ = policy.parts
    except DataError as error:
        message = f"does not fit the scorer ({error}); {AGAIN}."
        raise DataError(message, file=folder / WEIGHTS, column=error.column) from error
    return policy


def is_model(folder: Path) -> bool:
    """Whether this is a folder that `write_policy` wrote, in any version."""
    return FORMAT.is_of(folder / MANIFEST)


def check_model_folder(folder: Path) -> None:
    """Raise if a model must not be written there: something else is there, or the parent is not a folder."""
    if folder.exists() and not is_model(folder):
        raise UsageError(f"{folder} already exists and is not a model; name another folder.")
    check_parents(folder, "folder")


def _read_file(file: Path, manifest: dict[str, Any]) -> bytes:
    try:
        text = file.read_bytes()
    except FileNotFoundError as error:
        raise DataError(f"is missing from the model; {AGAIN}.", file=file) from error
    try:
        wanted = manifest["files"][file.name]["sha256"]
    except (KeyError, TypeError) as error:
        raise DataError(f"has no hash of {file.name}; {AGAIN}.", file=file.parent / MANIFEST) from error
    if _sha256(text) != wanted:
        raise DataError(f"is not the file described in the manifest: it was truncated or changed; {AGAIN}.", file=file)
    return text


def _weights(text: bytes, file: Path) -> dict[str, NDArray[Any]]:
    try:
        return arrays_of(text)
    except SafetensorError as error:
        raise DataError(f"does not contain weights ({error}); {AGAIN}.", file=file) from error


def _json_bytes(values: dict[str, Any]) -> bytes:
    return (json.dumps(values, indent=2, allow_nan=False) + "\n").encode()


def _sha256(text: bytes) -> str:
    return hashlib.sha256(text).hexdigest()
