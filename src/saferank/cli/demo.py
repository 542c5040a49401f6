"""`saferank demo`: the paper's story on synthetic data, in about a minute."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Console

from saferank.cli.json_output import AsJson, print_json
from saferank.cli.log_options import Seed, check_output_folder
from saferank.cli.screen import number_table, progress_bar, tell

if TYPE_CHECKING:
    from saferank.datasets.dataset import Dataset

FRACTION = 0.1
"""Share of the training queries whose labels the current ranker was trained on: the data set is small."""
METHODS = {
    "exposure-ips": "IPS: trust the clicks",
    "exposure-crm": "CRM: price in the risk",
    "auto": "saferank fit: correct it",
}


def demo(
    seed: Seed = 0,
    few: Annotated[float, typer.Option(min=1, max=1e15, help="Interactions of the small log to learn from.")] = 400,
    many: Annotated[float, typer.Option(min=1, max=1e15, help="Interactions of the large log to learn from.")] = 1e8,
    little: Annotated[float, typer.Option(min=500, max=1e8, help="Interactions of the small log to certify on.")] = 2e3,
    much: Annotated[float, typer.Option(min=500, max=1e8, help="Interactions of the large log to certify on.")] = 3e5,
    out: Annotated[Path, typer.Option(help="Folder to write.")] = Path("saferank-demo"),
    as_json: AsJson = False,
) -> None:
    """Learn from few clicks and from many, and ask whether to deploy.

    The current ranker shows documents to simulated users, who click. Three
    policies are learned from the log: with inverse propensity scoring (IPS),
    which corrects for position bias; with counterfactual risk minimisation
    (CRM, the paper), which stays near the current ranker where data is scarce;
    and with [cyan]saferank fit[/cyan], which starts from the current ranker and corrects it
    as far as the clicks support. All gradients are exact: training samples no
    rankings.

    Then the complete path, once with little data and once with much: write a
    log, learn a policy from it, and certify it on interactions that training
    never saw. The result is report.html.

    [cyan]saferank demo --seed 7 --few 200[/cyan]
    """
    from saferank.policy.model_folder import check_model_folder

    check_output_folder(out)
    sizes = {"little": round(little), "much": round(much)}
    for name in sizes:
        check_model_folder(out / name / "model")

    from saferank.datasets.dataset import load_dataset
    from saferank.lab.paper_methods import evaluate, learn_in_world, simulate_logs
    from saferank.lab.world import make_world, prepare
    from saferank.report.demo_figure import demo_figure
    from saferank.report.figures import save_figure

    console, status = Console(stderr=as_json), Console(stderr=True)
    with status.status("Generating queries, documents and the current ranker (compiles on first use)"):
        dataset = load_dataset(f"synthetic:small@{seed}")
        world = make_world(prepare(dataset), seed=seed, fraction=FRACTION)
        production = evaluate(world.logging_scorer, world.test)[0]
    tell(
        f"The current ranker, trained on few labels, answers {world.train.queries} queries with 5 of about "
        f"{world.train.lengths.mean():.0f} documents each.\nUsers examine rank k with probability 1/k² and click "
        "what they find relevant.\n",
        console,
    )
    learned_from = [round(few), round(many)]
    results: dict[tuple[str, int], float] = {}
    with progress_bar(status, transient=True) as progress:
        task = progress.add_task("Learning", total=len(learned_from) * len(METHODS))
        for size in learned_from:
            progress.update(task, description=f"Simulating {size:,} interactions")
            logs = simulate_logs(world, size, seed)
            for method, name in METHODS.items():
                progress.update(task, description=f"{name}, {size:,} interactions")
                scorer = learn_in_world(method, world, logs, seed=seed)
                results[method, size] = evaluate(scorer, world.test)[0]
                progress.advance(task)
    table = number_table(
        "NDCG@5 on unseen queries", ("", *(f"{size:,} interactions" for size in learned_from)), left=[""]
    )
    table.add_row("current ranker", *[f"{production:.3f}"] * len(learned_from))
    for method, name in METHODS.items():
        table.add_row(name, *(_cell(results[method, size], production) for size in learned_from))
    console.print(table)
    save_figure(demo_figure(production, results), out, "demo")
    for size in learned_from:
        ips, crm, ours = (_words(results[method, size] - production) for method in METHODS)
        tell(f"After {size:,} interactions: IPS {ips}, CRM {crm}, saferank {ours}.", console)
    tell(f"The chart is {out / 'demo.png'}.\n", console)
    verdicts = _verdicts(dataset, sizes, out, seed, console)
    if as_json:
        ndcg = [{"method": method, "interactions": size, "ndcg": value} for (method, size), value in results.items()]
        print_json({"out": out, "current_ranker": production, "learned": ndcg, "verdicts": verdicts})


def _verdicts(dataset: Dataset, sizes: dict[str, int], out: Path, seed: int, console: Console) -> list[dict[str, Any]]:
    """Log, learn and certify once per size; print the verdicts beside the truth, and write the last one's report.

    Returns what is printed as values.

    The clicks here depend more on relevance than the paper's, so that a log of modest size decides.
    """
    import numpy as np

    from saferank.doctor.diagnosis import diagnose
    from saferank.engine.click_models.position_based import PositionBasedModel
    from saferank.features.load_features import with_ids
    from saferank.lab.end_to_end import certify_learned, log_and_learn, production_policy, true_utility
    from saferank.lab.world import make_world, prepare
    from saferank.learning.settings import FitSettings, TrainingSettings
    from saferank.report.page import write_page
    from saferank.report.report_page import Report, report_page
    from saferank.verdict.certificate import meaning
    from saferank.verdict.exposure_shift import exposure_changes

    status = Console(stderr=True)
    title = "May the learned policy go live? Improvement in clicks per interaction"
    columns = ("log", "estimate", "lower bound (97.5%)", "truth", "verdict")  # the first look has half of delta
    table = number_table(title, columns, left=["log", "verdict"])
    sentences, values = [], list[dict[str, Any]]()
    data, users = with_ids(dataset.train), PositionBasedModel(relevance_slope=0.2, relevance_noise=0.05)
    with status.status("Training the current ranker for users whose clicks depend more on relevance"):
        world = make_world(prepare(dataset), seed=seed, fraction=FRACTION, click_model=users)
    live, settings = production_policy(world, data), FitSettings(training=TrainingSettings(seed=seed))
    tell("Now with users whose clicks depend more on relevance: may the learned policy go live?\n", console)
    for name, interactions in sizes.items():
        with status.status(f"Writing, learning from and certifying on {interactions:,} interactions"):
            rng = np.random.default_rng([seed, 5])
            file = out / name / "log.parquet"
            policy, log = log_and_learn(world, data, live, interactions, file, settings, rng)
            policy.save(out / name / "model")
            ledger = out / name / "ledger.json"
            ledger.unlink(missing_ok=True)  # of an earlier demo; its log is written anew
            found = certify_learned(policy, log, world, data, live, ledger=ledger)
            found.write(out / name / "certificate.json")
            truth = true_utility(policy, world, data) - true_utility(live, world, data)
        numbers = (f"{value:+.4f}" for value in (found.improvement, found.lower, truth))
        table.add_row(f"{interactions:,}", *numbers, found.verdict.value)
        values.append(
            {
                "interactions": interactions, "held_out": found.interactions, "improvement": found.improvement,
                "lower": found.lower, "truth": truth, "verdict": found.verdict,
            }
        )  # fmt: skip
        sentences.append(f"{interactions:,} interactions, {found.interactions:,} held out: {meaning(found)}")
    console.print(table)
    tell("\n".join(sentences), console)
    with status.status("Writing the report"):
        health = diagnose(log, data, policy.examination)
        changes = exposure_changes(policy, log, data, serve_as="sampled")
        name = "/".join((out / name / "model").parts[-2:])
        write_page(report_page(Report(name, policy.manifest, found, changes, health)), out / "report.html")
    tell(f"The report is {out / 'report.html'}.", console)
    return values


def _cell(value: float, production: float) -> str:
    color = "green" if value >= production - 0.005 else "red"
    return f"[{color}]{value:.3f} ({value - production:+.3f})[/{color}]"


def _words(change: float) -> str:
    if abs(change) <= 0.005:
        return "as good as the current ranker (within 0.005)"
    return f"{'better' if change > 0 else 'worse'} by {abs(change):.3f}"
