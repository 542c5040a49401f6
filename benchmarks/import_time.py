"""How long `import saferank` and `saferank --help` take, and that neither loads a heavy library.

python benchmarks/import_time.py [REPEATS]
"""

import subprocess
import sys
from statistics import median
from time import perf_counter

from rich.console import Console
from rich.table import Table

HEAVY = ("torch", "numba", "ibis", "altair", "duckdb", "pyarrow", "scipy", "jinja2")
CLI = "import sys; sys.argv = ['saferank', '{}']; from saferank.cli.main import run; run()"
SCRIPTS = {
    "import saferank": "import saferank",
    "saferank --version": CLI.format("--version"),
    "saferank --help": CLI.format("--help"),
}
NAME_HEAVY = (
    f"import atexit, sys\natexit.register(lambda: print(*sorted(set(sys.modules) & set({HEAVY})), file=sys.stderr))\n"
)


def run_python(script: str) -> str:
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    return done.stderr.strip()


def seconds(script: str) -> float:
    begin = perf_counter()
    run_python(script)
    return perf_counter() - begin


def main() -> int:
    repeats = int(sys.argv[1]) if len(sys.argv) > 1 else 15
    scripts = {"python -c pass": "pass", **SCRIPTS}
    # Round by round, so that whatever else the machine does falls on all alike.
    rounds = [[seconds(script) for script in scripts.values()] for _ in range(repeats)]
    times = dict(zip(scripts, map(median, zip(*rounds, strict=True)), strict=True))
    heavy = {name: run_python(NAME_HEAVY + script) for name, script in SCRIPTS.items()}

    table = Table(title=f"Median of {repeats}, milliseconds", title_justify="left")
    table.add_column()
    for column in ("in all", "beyond python -c pass", "heavy libraries loaded"):
        table.add_column(column, justify="right")
    for name, time in times.items():
        beyond = time - times["python -c pass"]
        table.add_row(name, f"{1e3 * time:.0f}", f"{1e3 * beyond:.0f}", heavy.get(name, "") or "none")
    Console().print(table)
    return int(any(heavy.values()))


if __name__ == "__main__":
    sys.exit(main())
