"""A weekly DAG for Airflow: fetch, fit, certify, deploy; `deploy` is skipped unless the verdict is DEPLOY."""

import subprocess
from datetime import datetime

from airflow.decorators import dag, task
from airflow.exceptions import AirflowSkipException

FOLDER = "/data/ranker"  # yours; log.parquet, features.parquet, and the ledger that counts the looks, live here
FIT = "saferank fit log.parquet --features features.parquet --out model"
CERTIFY = "saferank certify model log.parquet --features features.parquet --out certificate.json"
DEPLOY, KEEP, MORE_DATA = 0, 3, 4


@dag(schedule="@weekly", start_date=datetime(2026, 1, 1), catchup=False, max_active_runs=1)
def ranker() -> None:
    """One run at a time: each look at the same held-out clicks costs a share of delta."""

    @task.bash(cwd=FOLDER)
    def fetch() -> str:
        return "./fetch_log.sh"  # yours

    @task.bash(cwd=FOLDER)
    def fit() -> str:
        return FIT

    @task(retries=0)
    def certify() -> None:
        code = subprocess.run(CERTIFY.split(), cwd=FOLDER).returncode
        if code in (KEEP, MORE_DATA):
            raise AirflowSkipException(f"The current ranker stays: {'KEEP' if code == KEEP else 'MORE DATA'}.")
        if code != DEPLOY:
            raise RuntimeError(f"No verdict: exit code {code}.")

    @task.bash(cwd=FOLDER)
    def deploy() -> str:
        return "./deploy.sh model"  # yours

    fetch() >> fit() >> certify() >> deploy()


ranker()
