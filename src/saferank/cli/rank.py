"""`saferank rank`: scores and ranks of documents, by a model."""

from __future__ import annotations

import secrets
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console
from rich.status import Status

from saferank.cli.config import on_command_line, with_columns
from saferank.cli.json_output import AsJson, print_json
from saferank.cli.log_options import LARGEST_SEED, ServeAs, check_seed, parse_columns, parse_names
from saferank.cli.screen import tell
from saferank.engine.errors import UsageError
from saferank.files.atomic_write import check_output_file

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    import pyarrow as pa


def rank(
    context: typer.Context,
    model: Annotated[Path, typer.Argument(metavar="MODEL", help="A folder that [cyan]saferank fit[/cyan] wrote.")],
    out: Annotated[Path, typer.Option(help="File to write: .parquet or .csv.")],
    candidates: Annotated[
        str | None,
        typer.Argument(
            metavar="CANDIDATES",
            help="Parquet or CSV: a file, a folder, or a pattern. One row per document to rank, with the rows of each "
            "query together.",
            show_default=False,
        ),
    ] = None,
    serve_as: ServeAs = "deterministic",
    seed: Annotated[
        int | None,
        typer.Option(
            min=0, callback=check_seed, metavar="N", help="Seed of sampled rankings.", show_default="a new one"
        ),
    ] = None,
    cutoff: Annotated[
        int | None,
        typer.Option(min=1, metavar="K", help="Number of documents shown.", show_default="as for fit"),
    ] = None,
    ignore: Annotated[str, typer.Option(help="Numeric columns that are not features: label,price.")] = "",
    column: Annotated[
        list[str] | None,
        typer.Option(
            callback=with_columns,
            metavar="OURS=THEIRS",
            help="An id with another name, as for fit: [cyan]document_id=sku[/cyan]. Repeatable.",
        ),
    ] = None,
    query: Annotated[str, typer.Option("--query-column", help="Column with the id of the query.")] = "query_id",
    document: Annotated[
        str, typer.Option("--document-column", help="Column with the id of the document.")
    ] = "document_id",
    as_json: AsJson = False,
) -> None:
    """Rank documents with a model; memory does not grow with the file.

    Writes query_id and document_id (by the names that they have in CANDIDATES),
    score, rank (from 1) and exposure, the expected examination of the document:
    that of its rank if deterministic, the exact expectation over all rankings if
    sampled. Sampled rankings also have log_probability. Keep the scores: as a column of the next features, they let
    `fit --logging-scores` compute the exact exposure of the log that these
    rankings make. The printed seed gives the same rankings again.

    Features are matched by name. A missing feature is an error, and so is a
    numeric column that the model does not know (unless named with --ignore).

    [cyan]saferank rank model candidates.parquet --out ranked.parquet[/cyan]
    """
    from saferank.features.reader import candidate_files, id_names, read_candidates
    from saferank.features.table_source import table_sources
    from saferank.policy.policy import Policy
    from saferank.policy.rank_candidates import check_output, output_schema, rank_candidates, write_tables

    if candidates is None:  # the one argument is CANDIDATES if saferank.toml names the model
        of_file = context.lookup_default("model")
        if of_file is None or not on_command_line(context, "model"):
            raise UsageError("give MODEL and CANDIDATES: saferank rank model candidates.parquet --out ranked.parquet.")
        model, candidates = Path(of_file), str(model)
    named = parse_columns(column)
    check_output(out)
    check_output_file(out, candidate_files(candidates))
    policy = Policy.load(model)
    query, document = named.get("query_id", query), named.get("document_id", document)
    others = policy.id_columns if (query, document) == ("query_id", "document_id") else {}
    ids = query, document = id_names(table_sources(candidates, mixed=True)[0], query, document, others)
    with Console(stderr=True).status("Ranking") as status:
        blocks = read_candidates(
            candidates, numbers=policy.schema.numbers, categories=policy.schema.categories, ignore=parse_names(ignore),
            query=query, document=document,
        )  # fmt: skip
        if seed is None:
            seed = secrets.randbelow(LARGEST_SEED + 1)
        tables = rank_candidates(policy, blocks, serve_as=serve_as, seed=seed, cutoff=cutoff)
        rows = write_tables(_with_status(tables, status), output_schema(serve_as, ids), out)
    if as_json:
        used = seed if serve_as == "sampled" else None
        print_json({"out": out, "documents": rows, "serve_as": serve_as, "seed": used, "cutoff": cutoff})
        return
    shown = "" if cutoff is None else f", the first {cutoff} of each query shown"
    drawn = f" with --seed {seed}" if serve_as == "sampled" else ""
    tell(f"{out}: {rows:,} documents ranked, {serve_as}{drawn}{shown}.")


def _with_status(tables: Iterable[pa.Table], status: Status) -> Iterator[pa.Table]:
    done = 0
    for table in tables:
        yield table
        done += len(table)
        status.update(f"Ranked {done:,} documents")
