"""`--track mlflow`: a run of `fit` or `certify` recorded in MLflow, at MLFLOW_TRACKING_URI (or in ./mlruns)."""

from __future__ import annotations

import json
import math
import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Literal

import typer

from saferank.engine.errors import SaferankError, UsageError
from saferank.files.table_url import without_secrets

VARIABLE, FOLDER, EXPERIMENT = "MLFLOW_TRACKING_URI", "mlruns", "saferank"
MOST_CHARACTERS = 500
"""Longest value of a parameter that every MLflow server takes."""
Track = Annotated[
    Literal["mlflow"] | None,
    typer.Option(metavar="WHERE", help=f"Record the run: mlflow, at {VARIABLE} (by default in the folder {FOLDER})."),
]
Record = Callable[[Mapping[str, float | None], Mapping[str, str], Mapping[Path, str | None]], None]
"""Takes the results: metrics (those that are finite are recorded), tags, and files or folders -> where to put them."""


@contextmanager
def tracked(where: str | None, context: typer.Context) -> Iterator[Record]:
    """Begin a run with the options of this command; the results are given to the function that is returned.

    The run begins before the work, so an unreachable server is found before any work is done. If a command ends
    without results (an error, no verdict possible), its run is marked as failed.
    """
    if where is None:
        yield lambda _metrics, _tags, _artifacts: None
        return
    for name in ("MLFLOW_ALLOW_FILE_STORE", "MLFLOW_DISABLE_TELEMETRY"):  # folders are refused without the first
        os.environ.setdefault(name, "true")
    try:
        from mlflow.exceptions import MlflowException
        from mlflow.tracking import MlflowClient
    except ImportError as error:
        remedy = "install it with `pip install 'saferank[mlflow]'`"
        raise UsageError(f"--track mlflow needs the package mlflow; {remedy}.") from error
    place, status = os.environ.get(VARIABLE) or FOLDER, "FAILED"
    try:
        client = MlflowClient(place)
        experiment = client.get_experiment_by_name(EXPERIMENT)
        number = client.create_experiment(EXPERIMENT) if experiment is None else experiment.experiment_id
        run = client.create_run(number, run_name=context.info_name).info.run_id
        for option, value in context.params.items():
            if option != "track" and value is not None and value is not False and value not in ("", [], ()):
                client.log_param(run, option, _shown(value)[:MOST_CHARACTERS])

        def record(
            metrics: Mapping[str, float | None], tags: Mapping[str, str], artifacts: Mapping[Path, str | None]
        ) -> None:
            nonlocal status
            for name, number in metrics.items():
                if number is not None and math.isfinite(number):
                    client.log_metric(run, name, number)
            for name, word in tags.items():
                client.set_tag(run, name, word)
            for path, folder in artifacts.items():
                (client.log_artifacts if path.is_dir() else client.log_artifact)(run, str(path), folder)
            status = "FINISHED"

        try:
            yield record
        finally:
            client.set_terminated(run, status)
    except MlflowException as error:
        raise SaferankError(f"MLflow at {place}: {error}") from error


def _shown(value: object) -> str:
    """Return the value of an option, without the password of a URL."""
    return str([*map(without_secrets, map(str, value))] if isinstance(value, list) else without_secrets(str(value)))


def model_tags(model: Path) -> dict[str, str]:
    """Return what runs of `fit` and `certify` with the same model have in common, so that one finds the other."""
    manifest = json.loads((model / "manifest.json").read_text())
    return {"weights_sha256": manifest["files"]["weights.safetensors"]["sha256"]}
