"""`saferank rank`: scores and ranks of documents, by a model."""

from __future__ import annotations

import secrets
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer
from rich.console import Console
from rich.status import Status

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    import pyarrow as pa

LARGEST_SEED = 2**31


def rank(
    model: Annotated[Path, typer.Argument(metavar="MODEL", help="A folder that [cyan]saferank fit[/cyan] wrote.")],
    candidates: Annotated[
        str,
        typer.Argument(
            metavar="CANDIDATES",
            help="Parquet or CSV: a file, a folder, or a pattern. One row a document to rank, the rows of a query "
            "together.",
        ),
    ],
    out: Annotated[Path, typer.Option(help="The file to write: .parquet or .csv.")],
    serve_as: Annotated[
        Literal["deterministic", "sampled"],
        typer.Option(
            metavar="WAY",
            help="deterministic: by score; sampled: drawn from the policy, which the next log can be learned from.",
        ),
    ] = "deterministic",
    seed: Annotated[
        int | None,
        typer.Option(
            min=0, max=LARGEST_SEED, metavar="N", help="For the rankings that are drawn.", show_default="a new one"
        ),
    ] = None,
    cutoff: Annotated[
        int | None,
        typer.Option(
            min=1, metavar="K", help="How many documents are shown.", show_default="as the model was fitted for"
        ),
    ] = None,
    ignore: Annotated[str, typer.Option(help="Columns of numbers that are no features: a,b,c.")] = "",
    query: Annotated[str, typer.Option("--query-column", help="Column with the id of the query.")] = "query_id",
    document: Annotated[
        str, typer.Option("--document-column", help="Column with the id of the document.")
    ] = "document_id",
) -> None:
    """Rank documents by a model, as a stream: memory does not grow with the file.

    Writes query_id, document_id, score, rank (from 1), and exposure: the
    expected examination of the document, served like this. For deterministic
    ranking that is the examination of its rank; for sampled, the exact
    expectation over all rankings. Sampled rankings have log_probability too.
    Keep both with the clicks: they are the true propensities of the next log.
    The seed is printed, and draws the same rankings again.

    Features are found by name. One that the model reads and the file lacks is
    an error, and so is a column of numbers that it does not know (--ignore).

    [cyan]saferank rank model candidates.parquet --out ranked.parquet[/cyan]
    """
    from saferank.features.candidates import candidate_files, read_candidates
    from saferank.files.atomic_write import check_not_read
    from saferank.policy.policy import Policy
    from saferank.policy.rank_candidates import check_output, output_schema, rank_candidates, write_tables

    check_output(out)
    check_not_read(out, candidate_files(candidates))
    policy = Policy.load(model)
    ignored = [name.strip() for name in ignore.split(",") if name.strip()]
    with Console(stderr=True).status("Ranking") as status:
        blocks = read_candidates(
            candidates, numbers=policy.schema.names, ignore=ignored, query=query, document=document
        )
        if seed is None:
            seed = secrets.randbelow(LARGEST_SEED + 1)
        tables = rank_candidates(policy, blocks, serve_as=serve_as, seed=seed, cutoff=cutoff)
        rows = write_tables(_told(tables, status), output_schema(serve_as), out)
    shown = "" if cutoff is None else f", the first {cutoff} of each query shown"
    drawn = f" with --seed {seed}" if serve_as == "sampled" else ""
    Console().print(f"{out}: {rows:,} documents ranked, {serve_as}{drawn}{shown}.", soft_wrap=True, highlight=False)


def _told(tables: Iterable[pa.Table], status: Status) -> Iterator[pa.Table]:
    done = 0
    for table in tables:
        yield table
        done += len(table)
        status.update(f"Ranked {done:,} documents")
