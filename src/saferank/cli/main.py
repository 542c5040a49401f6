"""The command line: one file per command, which imports what it needs when it runs, so that help is quick."""

import sys
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console
from typer.core import TyperGroup

from saferank import __version__
from saferank.cli.aggregate import aggregate
from saferank.cli.certify import certify
from saferank.cli.closed_pipe import tolerate_closed_pipes
from saferank.cli.config import VARIABLE, use_config
from saferank.cli.data import data
from saferank.cli.demo import demo
from saferank.cli.doctor import doctor
from saferank.cli.export import export
from saferank.cli.fit import fit
from saferank.cli.json_output import JSON, error_values, message_of, print_json
from saferank.cli.plan import PlanCommand, plan
from saferank.cli.rank import rank
from saferank.cli.report import report
from saferank.cli.reproduce import reproduce
from saferank.cli.screen import tell
from saferank.cli.simulate import simulate
from saferank.cli.split import split
from saferank.cli.termination import INTERRUPTED, TERMINATED, end_by_signals
from saferank.cli.verbose import hide_steps, show_steps
from saferank.engine.errors import SaferankError

WORDS = {INTERRUPTED: "Interrupted.", TERMINATED: "Terminated."}


class _Group(TyperGroup):
    """The options of all commands, before or after the command; with --json, errors are JSON too."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        first: list[str] = []
        rest: list[str] = []
        words = iter(args)
        for word in words:
            if word == "--":
                rest += [word, *words]
            elif word == "--config":
                first += [word, *islice(words, 1)]
            else:
                (first if word in ("-v", "--verbose") or word.startswith("--config=") else rest).append(word)
        ctx.meta[JSON] = "--json" in rest
        return super().parse_args(ctx, first + rest)

    def invoke(self, ctx: Any) -> Any:
        """Run the command; with --json, print its error, which is then raised as any other."""
        try:
            return super().invoke(ctx)
        except (typer.Exit, typer.Abort):
            raise
        except Exception as error:
            of_file = (ctx.default_map or {}).get(ctx.invoked_subcommand, {})
            if ctx.meta[JSON] or of_file.get("as_json"):
                print_json(error_values(error))
            raise


app = typer.Typer(
    name="saferank",
    cls=_Group,
    no_args_is_help=True,
    rich_markup_mode="rich",
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


def _print_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"saferank {__version__}")
        raise typer.Exit


@app.callback(
    epilog="Exit codes: 0 done (certify: DEPLOY), 1 unusable data, 2 wrong usage, 3 KEEP, 4 MORE DATA, 130 interrupted,"
    " 143 terminated. See [bold]saferank COMMAND --help[/bold]."
)
def saferank(
    context: typer.Context,
    config: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE", envvar=VARIABLE, help="Settings of all commands.", show_default="saferank.toml, if here"
        ),
    ] = None,
    verbose: Annotated[bool, typer.Option("--verbose", "-v", help="Show each step and its time.")] = False,
    version: Annotated[  # noqa: ARG001 (its callback acts on it)
        bool,
        typer.Option("--version", callback=_print_version, is_eager=True, help="Show the version and stop."),
    ] = False,
) -> None:
    """Learn a better ranker from clicks. Never ship a worse one.

    A ranker decides what users see and click, so clicks are biased, and a ranker
    learned from few clicks can be worse than the current one. saferank corrects
    the bias and accounts for the uncertainty.

    [bold]Start here[/bold]

    [cyan]saferank demo[/cyan]                  learning from few clicks and from many
    [cyan]saferank data synthetic:small[/cyan]  what is in a synthetic data set
    [cyan]saferank reproduce synthetic:small --quick[/cyan]  the paper in minutes

    [bold]On your own log[/bold] ([cyan]simulate[/cyan] makes one to try it on)

    [cyan]saferank doctor log.parquet --features features.parquet[/cyan]
    [cyan]saferank fit log.parquet --features features.parquet --out model[/cyan]
    [cyan]saferank certify model log.parquet --features features.parquet[/cyan]
    [cyan]saferank report model --log log.parquet --features features.parquet[/cyan]
    [cyan]saferank rank model candidates.parquet --out ranked.parquet[/cyan]
    [cyan]saferank export model --to onnx --out model.onnx[/cyan]

    [cyan]saferank aggregate[/cyan] counts a large log once for all of these, and
    [cyan]saferank plan[/cyan] says how to make the next log decisive. Any other ranker can be
    certified too: [cyan]saferank split[/cyan] writes what it may be trained on.

    [bold]Settings, stated once[/bold]: saferank.toml, in the folder you work in

    \\[columns]
    click = "clicked"            # as --column click=clicked
    \\[common]                     # for every command with such an option
    log = "log.parquet"
    features = "features.parquet"
    model = "model"
    unit = "user_id"
    \\[fit]                        # for one command; the command line wins
    out = "model"
    """
    if verbose:
        context.call_on_close(partial(hide_steps, show_steps()))
    use_config(context, config)


for command in (demo, data, simulate, aggregate, doctor, plan, fit, split, certify, report, rank, export, reproduce):
    app.command(cls=PlanCommand if command is plan else None)(command)


def run() -> None:
    """Run the command line. A user's mistake ends in a message, never in a stack trace.

    The exit code is that of the command even if the reader of its output has gone, as in `saferank certify ... | head`.
    """
    with tolerate_closed_pipes():
        try:
            with end_by_signals():
                app()
        except (SaferankError, OSError) as error:
            tell(message_of(error), Console(stderr=True), headline="Error:", style="bold red")
            sys.exit(getattr(error, "exit_code", 1))
        except SystemExit as end:  # Typer turns Ctrl-C into this, without a message
            if end.code in WORDS:
                tell("", Console(stderr=True), headline=WORDS[end.code], style="bold red")
            raise
