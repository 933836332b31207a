"""The package without the pipeline: a wheel, in an environment with torch and little else."""

import os
import re
import shutil
import subprocess
import sys
import tomllib
import zipfile
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from packaging.requirements import Requirement
from packaging.specifiers import SpecifierSet

import epcore

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[1]


@pytest.fixture(scope="module")
def wheel(tmp_path_factory):
    """Built from a copy, so that nothing is left in the checkout."""
    source = tmp_path_factory.mktemp("source")
    for name in ("pyproject.toml", "README.md", "LICENSE"):
        shutil.copy(ROOT / name, source)
    shutil.copytree(ROOT / "epcore", source / "epcore")
    command = [sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps"]
    subprocess.run([*command, "--no-build-isolation", "-w", "dist", "."], cwd=source, check=True)
    (built,) = (source / "dist").glob("*.whl")
    return built


def test_every_pinned_version_installs_on_the_oldest_python_of_the_project():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    oldest = project["requires-python"].removeprefix(">=")
    lines = (ROOT / "requirements.txt").read_text(encoding="utf-8").splitlines()
    pinned = [Requirement(line).name for line in lines if not line.startswith("#")]
    asked = {name: distribution(name).metadata["Requires-Python"] or "" for name in pinned}
    assert len(asked) > 50
    assert [name for name in asked if oldest not in SpecifierSet(asked[name])] == []


def needed(name, found):
    """The packages that one needs, and those that they need, as far as they are installed."""
    try:
        package = distribution(name)
    except PackageNotFoundError:
        return found
    if package.name not in found:
        found[package.name] = package
        for text in package.requires or ():
            asked = Requirement(text)
            if asked.marker is None or asked.marker.evaluate({"extra": ""}):
                needed(asked.name, found)
    return found


@pytest.fixture(scope="module")
def installed(wheel, tmp_path_factory):
    """A Python with the wheel and the packages that its core asks for, and no others."""
    folder = tmp_path_factory.mktemp("clean")
    command = [sys.executable, "-m", "venv", "--without-pip", "--symlinks", folder]
    subprocess.run(command, check=True)
    (packages,) = folder.glob("lib/python*/site-packages")
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(packages)
        (facts,) = (name for name in archive.namelist() if name.endswith(".dist-info/METADATA"))
        asked = re.findall(r"^Requires-Dist: (.+)$", archive.read(facts).decode(), re.M)
    core = [Requirement(text) for text in asked if "extra ==" not in text]
    assert sorted(each.name for each in core) == ["numpy", "pydantic", "pyyaml", "torch"]
    found = {}
    for each in core:
        needed(each.name, found)
    for package in found.values():
        for part in {file.parts[0] for file in package.files or ()} - {"..", "__pycache__"}:
            place = Path(package.locate_file(part))
            if place.exists() and not (packages / part).exists():
                (packages / part).symlink_to(place)
    return folder / "bin" / "python"


def run(python, code):
    command = [python, "-I", "-c", code]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def test_the_wheel_has_the_templates_of_tables_and_pages(wheel):
    folder = ROOT / "epcore" / "report" / "templates"
    with zipfile.ZipFile(wheel) as archive:
        names = set(archive.namelist())
    assert {f"epcore/report/templates/{file.name}" for file in folder.iterdir()} <= names


def test_its_commands_for_people_run_where_no_checkout_is(wheel, tmp_path):
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(tmp_path / "wheel")
    points = np.repeat(np.eye(3, 8), 4, axis=0) + np.arange(12)[:, None] / 100
    labels = ["a", "", "", "", "b", "", "", "", "c", "", "", ""]
    np.savez(tmp_path / "mine.npz", features=points, labels=labels)
    command = [sys.executable, "-m", "epcore", "predict", "--features", "mine.npz"]
    environment = {**os.environ, "PYTHONPATH": str(tmp_path / "wheel")}
    done = subprocess.run(
        command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    predictions = pd.read_csv(tmp_path / "predictions.csv")
    assert list(predictions["class"]) == list("aaabbbccc")


@pytest.mark.parametrize("package", ["snakemake", "pandas", "matplotlib", "codecarbon", "scipy"])
def test_the_environment_is_clean(installed, package):
    assert "ModuleNotFoundError" in run(installed, f"import {package}").stderr


def test_the_lines_of_the_readme_run(installed):
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    shown = re.findall(r"^```python\n(.*?)^```$", text, re.M | re.S)
    assert len(shown) == 2
    for code in shown:
        done = run(installed, f"{code}\nimport epcore; print(epcore.__file__)")
        assert done.returncode == 0, done.stderr
        assert str(installed.parents[1]) in done.stdout


def test_what_the_package_offers_is_listed():
    assert {"EmbeddingPropagation", "LabelPropagation"} <= set(dir(epcore))
