"""A copy of the project in a folder with a space in its name, and one finished run of it."""

import contextlib
import io
import multiprocessing
import os
import re
import shlex
import shutil
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

import pytest
from filelock import FileLock

# Snakemake keeps what sys.stdout is when it is imported, and gives it to its jobs. If that is no
# file, they write to file descriptor 1 instead, which `_snakemake` redirects.
with contextlib.redirect_stdout(io.StringIO()):
    import snakemake.cli

ROOT = Path(__file__).parents[2]


@dataclass(frozen=True)
class Run:
    code: int
    text: str

    @property
    def jobs(self) -> dict[str, int]:
        """Rule -> number of jobs of a run that succeeds, as Snakemake's table of them says."""
        assert self.code == 0, self.text
        table = self.text.split("Job stats:", 1)[-1].split("total", 1)[0]
        return {rule: int(n) for rule, n in re.findall(r"^(\w+)\s+(\d+)$", table, re.M)}

    @property
    def nothing_to_do(self) -> bool:
        return self.code == 0 and "Nothing to be done" in self.text


@dataclass(frozen=True)
class Project:
    folder: Path

    def snakemake(self, *arguments: str) -> Run:
        """In a process of its own, forked so that Snakemake is not imported anew."""
        with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
            process = multiprocessing.get_context("fork").Process(
                target=_snakemake, args=(arguments, self.folder, out.fileno(), err.fileno())
            )
            process.start()
            process.join(1500)  # one that hangs fails its test, not the whole run
            if process.is_alive():
                process.kill()
                process.join()
            text = ""
            for file in (out, err):
                file.seek(0)
                text += file.read().decode("utf-8", errors="replace")
        return Run(process.exitcode, text)

    def build(self, *arguments: str) -> Run:
        return self.snakemake(*arguments or ("--cores", "2"), "tables/main.tex")

    def plan(self, *arguments: str) -> Run:
        return self.snakemake("-n", "tables/main.tex", *arguments)

    def command(self, stage: str, target: str) -> list[str]:
        """The command of the stage that makes a target, as Snakemake prints it."""
        printed = self.snakemake("-n", "-p", "--force", target).text
        found = re.search(rf"epcore ({stage} .*?) > ", printed)
        assert found, printed
        return [sys.executable, "-m", "epcore", *shlex.split(found[1])]

    def replace(self, file: str, old: str, new: str) -> None:
        path = self.folder / file
        text = path.read_text(encoding="utf-8")
        assert old in text
        path.write_text(text.replace(old, new, 1), encoding="utf-8")


def _snakemake(arguments: tuple[str, ...], folder: Path, out: int, err: int) -> None:
    """Does what `python -m snakemake` does, in a folder; out, err: descriptors of open files."""
    os.chdir(folder)
    os.dup2(out, 1)
    os.dup2(err, 2)
    sys.stdout, sys.stderr = (open(number, "w", closefd=False) for number in (1, 2))  # noqa: SIM115
    sys.argv = ["snakemake", *arguments]
    snakemake.cli.main(arguments)


def new_project(parent: Path) -> Project:
    folder = parent / "my project"
    folder.mkdir()
    for name in ("Snakefile", "environment.yml"):
        shutil.copy(ROOT / name, folder)
    for name in ("config", "workflow", "profiles"):
        shutil.copytree(ROOT / name, folder / name)
    shutil.copy(Path(__file__).with_name("tiny.yaml"), folder / "config" / "scales")
    project = Project(folder)
    project.replace("config/config.yaml", "scale: demo", "scale: tiny")
    return project


@pytest.fixture(scope="session")
def project_in():
    """Makes a project, in a folder, of which nothing was run yet."""
    return new_project


@pytest.fixture
def project(tmp_path):
    """Nothing run yet."""
    return new_project(tmp_path)


def once(tmp_path_factory, name, build):
    """A project and what its run said, of which `build(folder)` makes both.

    Built once, also where several processes test: the first one that needs it builds it.
    """
    root = tmp_path_factory.getbasetemp()
    shared = root.parent if "PYTEST_XDIST_WORKER" in os.environ else root
    folder, said = shared / name, shared / name / "said.txt"
    with FileLock(shared / f"{name}.lock"):
        if not said.exists():
            folder.mkdir()
            run = build(folder)
            assert run.code == 0, run.text
            said.write_text(run.text, encoding="utf-8")
    return Project(folder / "my project"), Run(0, said.read_text(encoding="utf-8"))


@pytest.fixture(scope="session")
def finished_once(tmp_path_factory):
    """The main table of a tiny scale."""
    return once(tmp_path_factory, "finished", lambda folder: new_project(folder).build())


# Analysis figures of few points, which are enough to see that they are made.
SMALLER = {"draws": 2, "batches": 5, "grid": 15, "resamples": 50, "steps": 8}


@pytest.fixture(scope="session")
def everything_once(finished_once, tmp_path_factory):
    """Target `all` behind the main table, of a scale that has this table alone and every figure."""

    def build(folder):
        project = Project(folder / "my project")
        shutil.copytree(finished_once[0].folder, project.folder)
        project.replace("config/scales/tiny.yaml", "extends: demo", "extends: demo\ntables: [main]")
        file = project.folder / "config/figures.yaml"
        text = file.read_text(encoding="utf-8").replace("  backbone: resnet12", "  backbone: conv4")
        for key, value in SMALLER.items():
            text = re.sub(rf"^  {key}: \d+", f"  {key}: {value}", text, flags=re.M)
        file.write_text(text, encoding="utf-8")
        return project.snakemake("--cores", "2", "all")

    return once(tmp_path_factory, "everything", build)


@pytest.fixture
def finished(finished_once, tmp_path):
    """A copy, times of files included, that a test may change."""
    folder = tmp_path / "my project"
    shutil.copytree(finished_once[0].folder, folder)
    return Project(folder)
