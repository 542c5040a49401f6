"""What is released: builds wheel and sdist, installs them in new environments, and prints sizes and times of imports.

python benchmarks/install_size.py [FOLDER]

The first environment is complete (`pip install saferank`, without extras). It runs `saferank --version`, a short demo,
and what the quickstart shows in Python, on two pandas DataFrames with column names of their own: the time from `pip
install` to that verdict is printed. The second is for serving alone (NumPy, safetensors and the bare wheel) and ranks
with the model of that demo. Fails if one of them does not work, if the verdict takes more than five minutes, or if the
sdist holds anything that is not needed. FOLDER keeps wheel and sdist. Times of imports are of the processor.
"""

import os
import subprocess
import sys
import tarfile
import tempfile
from pathlib import Path
from statistics import median
from time import perf_counter

from rich.console import Console
from rich.table import Table

HOME = Path(__file__).parents[1]
EXPECTED = {
    "src", "tests", "benchmarks", "docs", "examples", "mkdocs.yml", "mkdocs_hooks.py", "Dockerfile", ".gitignore",
    "CHANGELOG.md", "CONTRIBUTING.md", "LICENSE", "Makefile",
    "PKG-INFO", "README.md", "constraints.txt", "pyproject.toml",
}  # fmt: skip
SUFFIXES = {".py", ".md", ".png", ".svg", ".html", ".css", ".txt", ".typed", ".toml", ".yml", ".yaml", ""}
MOST_BYTES = 5_000_000
DEMO = ("demo", "--few", "100", "--many", "1000", "--little", "500", "--much", "5000")
RANK = """
import sys
from saferank import Policy
policy = Policy.load(sys.argv[1])
rows = [[float(row + column) for column in range(len(policy.schema.numbers))] for row in range(3)]
assert sorted(policy.rank(rows).rank.tolist()) == [1, 2, 3]
"""
FIRST_TIME = """
import numpy as np
import pandas as pd
from saferank import SafeRanker

rng = np.random.default_rng(0)
wanted = rng.normal(size=(200, 20))  # of (search term, product)
term = rng.integers(0, 200, 30_000)
seen = 0.5 * wanted[term] + rng.gumbel(size=(30_000, 20))
product = np.argsort(-seen, axis=1)[:, :8]
liked = 1 / (1 + np.exp(2 - np.take_along_axis(wanted[term], product, 1)))
bought = rng.random(product.shape) < liked / np.arange(1, 9)
rows = {"visit": np.repeat(np.arange(30_000), 8), "term": np.repeat(term, 8), "sku": product.ravel()}
rows |= {"slot": np.tile(np.arange(1, 9), 30_000), "bought": bought.ravel()}
at = pd.date_range("2026-01-01", periods=30_000, freq="37s")
log = pd.DataFrame(rows | {"at": np.repeat(at, 8)})
every = pd.MultiIndex.from_product([range(200), range(20)], names=["term", "sku"]).to_frame(index=False)
features = every.assign(rating=(wanted + 0.5 * rng.normal(size=wanted.shape)).ravel(), price=rng.random(4000))
names = {"impression_id": "visit", "query_id": "term", "document_id": "sku", "position": "slot", "click": "bought"}
ranker = SafeRanker().fit(log, features, columns=names | {"timestamp": "at"})
print(ranker.certify(log, features, columns=names | {"timestamp": "at"}).verdict.value)
"""
MOST_SECONDS = 300.0


def run(*call: object, cwd: Path | None = None) -> str:
    env = {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}
    done = subprocess.run([*map(str, call)], stdout=subprocess.PIPE, text=True, check=True, cwd=cwd, env=env)
    return done.stdout


def check_sdist(sdist: Path) -> None:
    """Raise if it holds anything else than sources, tests and docs, or is large."""
    with tarfile.open(sdist) as archive:
        files = [Path(*Path(one.name).parts[1:]) for one in archive.getmembers() if one.isfile()]
    wrong = [file for file in files if file.parts[0] not in EXPECTED or file.suffix not in SUFFIXES]
    wrong += [file for file in files if "__pycache__" in file.parts]
    if wrong or sdist.stat().st_size > MOST_BYTES:
        raise SystemExit(
            f"{sdist.name}: {sdist.stat().st_size:,} bytes, with {', '.join(map(str, wrong)) or 'no file'} too many."
        )


def environment(folder: Path, *packages: object) -> tuple[Path, int]:
    """Return the Python of a new environment, and the bytes of what was installed into it."""
    run(sys.executable, "-m", "venv", folder)
    python = folder / "bin" / "python"
    before = size(folder)
    run(python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", *packages)
    return python, size(folder) - before


def size(folder: Path) -> int:
    return sum(file.lstat().st_size for file in folder.rglob("*"))


def import_seconds(python: Path, script: str, repeats: int = 5) -> float:
    """Median processor time beyond that of Python itself; the first one, which may compile, does not count."""

    def used(code: str) -> float:
        before = os.times()
        run(python, "-c", code)
        after = os.times()
        return after.children_user + after.children_system - before.children_user - before.children_system

    return median([used(script) - used("pass") for _ in range(repeats + 1)][1:])


def main() -> int:
    table = Table(title="An installation", title_justify="left")
    for column in ("", "complete", "for serving alone"):
        table.add_column(column, justify="left" if not column else "right")
    with tempfile.TemporaryDirectory() as temporary:
        work = Path(temporary)
        built = Path(sys.argv[1]) if len(sys.argv) > 1 else work / "dist"
        run(sys.executable, "-m", "build", "--outdir", built, HOME)
        (wheel,), (sdist,) = built.glob("*.whl"), built.glob("*.tar.gz")
        check_sdist(sdist)
        print(f"{wheel.name}: {wheel.stat().st_size / 1e6:.2f} MB; {sdist.name}: {sdist.stat().st_size / 1e6:.2f} MB.")
        pinned = ("-c", HOME / "constraints.txt")
        began = perf_counter()
        complete, all_bytes = environment(work / "complete", *pinned, wheel)
        installed = perf_counter()
        verdict = run(complete, "-c", FIRST_TIME, cwd=work).strip()
        done = perf_counter()
        print(f"pip install: {installed - began:.0f} s; from DataFrames to {verdict}: {done - installed:.0f} s")
        serving, numpy_bytes = environment(work / "serving", *pinned, "numpy", "safetensors")
        run(serving, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--no-deps", wheel)
        print(run(complete, "-m", "saferank", "--version", cwd=work).strip())
        began = perf_counter()
        run(complete, "-m", "saferank", *DEMO, "--out", work / "demo", cwd=work)
        print(f"saferank {' '.join(DEMO)}: {perf_counter() - began:.0f} s")
        models = [file.parent for file in (work / "demo").rglob("weights.safetensors")]
        run(serving, "-c", RANK, models[0], cwd=work)
        own = size(next((work / "serving").glob("lib/*/site-packages/saferank")))
        table.add_row("saferank itself, MB", *[f"{own / 1e6:.1f}"] * 2)
        table.add_row("with all that it needs, MB", f"{all_bytes / 1e6:,.0f}", f"{(numpy_bytes + own) / 1e6:,.0f}")
        for script in ("import saferank", "from saferank import Policy", "from saferank import SafeRanker"):
            pythons = (complete,) if "SafeRanker" in script else (complete, serving)
            table.add_row(f"{script}, s", *(f"{import_seconds(python, script):.2f}" for python in pythons))
    Console(width=100).print(table)
    return int(done - began > MOST_SECONDS or verdict != "DEPLOY")


if __name__ == "__main__":
    sys.exit(main())
