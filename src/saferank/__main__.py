"""`python -m saferank`: the same as the `saferank` command."""

from saferank.cli.main import run

if __name__ == "__main__":
    run()
