"""`saferank reproduce`: the paper's tables and figures."""

from pathlib import Path
from typing import Annotated, Literal

import typer
from rich.console import Console, Group
from rich.live import Live
from rich.text import Text

from saferank.cli.json_output import AsJson, print_json
from saferank.cli.log_options import Constant, DataArgument, check_output_folder, parse_names
from saferank.cli.screen import progress_bar

INTERACTIONS, RUNS = "1e2:1e9:25", 10
QUICK_INTERACTIONS, QUICK_RUNS = "1e2,4e2,1e4,1e6,1e8", 2


def reproduce(
    data: DataArgument,
    methods: Annotated[str, typer.Option(help="Methods separated by commas, or [cyan]all[/cyan].")] = "all",
    interactions: Annotated[
        str | None,
        typer.Option(
            help="Numbers of logged interactions: FIRST:LAST:POINTS (log-spaced), or a list.", show_default=INTERACTIONS
        ),
    ] = None,
    runs: Annotated[
        int | None,
        typer.Option(
            min=1, help="Independent runs: clicks, and the weights that learning starts from.", show_default=str(RUNS)
        ),
    ] = None,
    delta: Annotated[float, typer.Option(help="Probability that the lower bound fails, for the CRM methods.")] = 0.01,
    ablation: Annotated[
        bool, typer.Option("--ablation", help="Also both CRM methods with delta from 0.1 to 1e-5.")
    ] = False,
    scorer: Annotated[str, typer.Option(help="Kind of scorer: mlp or linear.")] = "mlp",
    constant: Constant = "paper",
    known_logging_policy: Annotated[
        bool,
        typer.Option("--known-logging-policy", help="Also IPS and CRM that know its exposure, start from it, or both."),
    ] = False,
    logging_temperature: Annotated[
        float, typer.Option(min=0.0, help="The logging policy's scores are divided by this: above 1, it explores more.")
    ] = 1.0,
    logging_policies: Annotated[
        Literal["one", "each"], typer.Option(help="One logging policy for all runs, or one for each.")
    ] = "one",
    last_rank: Annotated[
        bool,
        typer.Option(
            "--last-rank",
            help="Also IPS and CRM with the exposure of the last rank known, as in the authors' later code.",
        ),
    ] = False,
    neighbours: Annotated[
        bool,
        typer.Option("--neighbours", help="Also DR, safe DR, PRPO, the gain bound, POEM, and IPS with SEA or GENSPEC."),
    ] = False,
    trust: Annotated[
        bool,
        typer.Option(
            "--trust",
            help="Also IPS, CRM, DR, safe DR and PRPO with trust bias known, or estimated from the log, and with a "
            "position-based curve estimated from it.",
        ),
    ] = False,
    stop_by: Annotated[
        Literal["clicks", "objective"],
        typer.Option(
            help="Early stopping: the highest IPS estimate of clicks on the validation queries, or the highest value "
            "of what each method maximises."
        ),
    ] = "clicks",
    world: Annotated[
        str,
        typer.Option(help="How users click: position-based, trust-bias, adversarial, tail or small-validation."),
    ] = "position-based",
    gain: Annotated[
        Literal["exponential", "linear"], typer.Option(help="Gain of the NDCG: 2^label - 1, or the label.")
    ] = "exponential",
    jobs: Annotated[int, typer.Option(min=0, help="Processes; 0: one per core.")] = 0,
    dask: Annotated[
        str | None,
        typer.Option(
            metavar="ADDRESS",
            help="Run on a Dask cluster instead: its scheduler, such as tcp://host:8786. Workers of one thread each, "
            "which see OUT under the same path.",
        ),
    ] = None,
    quick: Annotated[
        bool, typer.Option("--quick", help=f"{QUICK_RUNS} runs at N = {QUICK_INTERACTIONS}, at most 10 epochs.")
    ] = False,
    out: Annotated[Path, typer.Option(help="Folder for results, table and figures.")] = Path("reproduction"),
    as_json: AsJson = False,
) -> None:
    """Repeat the paper's experiment: simulated clicks, six methods, all figures.

    Results are appended to OUT/results.parquet; the same command continues a run
    that was interrupted. At the end: the table (Markdown, LaTeX), the figures
    (PNG, SVG, HTML), and a check of each of the paper's findings.

    [cyan]saferank reproduce synthetic:small --quick[/cyan]
    [cyan]saferank reproduce MSLR-WEB30K/Fold1 --known-logging-policy[/cyan]
    """
    from saferank.lab.experiment import Plan, parse_interactions
    from saferank.lab.reproduce import reproduce as run
    from saferank.lab.results import KNOWN_METHODS, LAST_RANK_METHODS, NEIGHBOURS, PAPER_METHODS, TRUST_METHODS
    from saferank.report.publish import publish

    chosen = PAPER_METHODS if methods == "all" else tuple(parse_names(methods))
    for asked, added in (
        (known_logging_policy, KNOWN_METHODS),
        (last_rank, LAST_RANK_METHODS),
        (neighbours, NEIGHBOURS),
        (trust, TRUST_METHODS),
    ):
        chosen = tuple(dict.fromkeys([*chosen, *(added if asked else ())]))
    plan = Plan(
        dataset=data,
        methods=chosen,
        interactions=parse_interactions(interactions or (QUICK_INTERACTIONS if quick else INTERACTIONS)),
        runs=runs or (QUICK_RUNS if quick else RUNS),
        delta=delta,
        ablation=ablation,
        scorer=scorer,
        constant=constant,
        logging_temperature=logging_temperature,
        one_logging_policy=logging_policies == "one",
        world=world,
        gain=gain,
        training={"stop_by": stop_by, **({"epochs": 10} if quick else {})},
    )
    check_output_folder(out)
    console, status = Console(stderr=as_json), Console(stderr=True)
    bar = progress_bar(status)
    task = bar.add_task("Preparing the data", total=len(plan.jobs()))
    now_running = Text("")

    def show(done: int, total: int, running: list[str]) -> None:
        bar.update(task, completed=done, total=total, description="Learning")
        now_running.plain = "".join(f"  {name}\n" for name in running)

    with Live(Group(bar, now_running), console=status, transient=True):
        results = run(plan, out, jobs=jobs, dask=dask, progress=show)
    printed = publish(results, out, console, delta=delta, ablation=ablation)
    if as_json:
        print_json({"out": out, **printed})
