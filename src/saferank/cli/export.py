"""`saferank export`: a model in the format of a search server, and proof that it scores the same there."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

import typer

from saferank.cli.config import on_command_line
from saferank.cli.json_output import AsJson, print_json
from saferank.cli.screen import tell
from saferank.engine.errors import DataError, UsageError
from saferank.files.atomic_write import check_output_file


def export(
    context: typer.Context,
    model: Annotated[
        Path | None,
        typer.Argument(metavar="MODEL", help="A folder that [cyan]saferank fit[/cyan] wrote.", show_default=False),
    ] = None,
    to: Annotated[
        Literal["onnx", "lightgbm", "opensearch", "elasticsearch", "solr", "vespa"] | None,
        typer.Option(metavar="FORMAT", help="onnx, lightgbm, opensearch, elasticsearch, solr or vespa."),
    ] = None,
    out: Annotated[Path | None, typer.Option(help="File to write; its name is the name of the model.")] = None,
    verify: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Score the golden vectors of an exported FILE again.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Write a model in the format of a search server, which then needs no saferank.

    The exported model takes raw features and prepares them as fit did. Only ONNX
    can scale features per query; the other formats score each document by itself
    and need a fit with --scaling none. A model that a format cannot express is
    refused.

    FILE.golden.json, beside FILE, has rows of features and their scores. Export
    and --verify score these rows again: ONNX in onnxruntime, LightGBM in
    LightGBM, the others with an evaluator written from their documentation. If
    scores differ by more than 1e-5 relative to their size, the exit code is 1.

    [cyan]saferank export model --to onnx --out model.onnx[/cyan]
    [cyan]saferank export --verify model.onnx[/cyan]
    """
    if verify is not None:
        if any(on_command_line(context, name) for name in ("model", "to", "out")):
            raise UsageError("--verify takes an exported file alone, without MODEL, --to and --out.")
        _verify(verify, as_json=as_json)
        return
    if model is None or to is None or out is None:
        raise UsageError("export needs MODEL, --to and --out: saferank export model --to onnx --out model.onnx.")
    check_output_file(out)
    from saferank.export.export_policy import export_policy
    from saferank.export.golden import golden_file
    from saferank.policy.policy import Policy

    done = export_policy(Policy.load(model), to, out)
    if as_json:
        print_json(
            {
                "out": out,
                "to": to,
                "golden": golden_file(out),
                "documents": done.documents,
                "difference": done.difference,
            }
        )
        return
    tell(
        f"{out}: {to}; {done.documents} golden vectors in {golden_file(out)}, largest relative difference of scores "
        f"{done.difference:.0e}."
    )


def _verify(exported: Path, *, as_json: bool) -> None:
    from saferank.export.export_policy import TOLERATED, verify_export

    done = verify_export(exported)
    if not done.same:
        message = f"scores of {done.documents} golden vectors differ by {done.difference:.0e} of their size, but only "
        raise DataError(f"{message}{TOLERATED:.0e} is tolerated; export the model again.", file=exported)
    if as_json:
        print_json({"verified": exported, "documents": done.documents, "difference": done.difference})
        return
    tell(f"{exported}: {done.documents} golden vectors, largest relative difference of scores {done.difference:.0e}.")
