"""What jobs ran on: facts of their metas, counted, and each difference seen."""

import json
import re
from pathlib import Path

import pytest

from epcore.files import Provenance
from epcore.report import environment
from epcore.report.config import EnvironmentConfig


@pytest.fixture
def stage(tmp_path, monkeypatch):
    """Three real metas; the last is of another machine and without git."""
    monkeypatch.chdir(tmp_path)
    names = ("a/pretrain.meta.json", "b/pretrain.meta.json", "b/5way-1shot.meta.json")
    for name, kind in zip(names, ("pretrain", "pretrain", "evaluate"), strict=True):
        more = {"device": "a CPU <8>", "precision": "bf16"} if kind == "pretrain" else {}
        made = Path(name.replace(".meta.json", ".pt"))
        made.parent.mkdir(exist_ok=True)
        made.touch()
        Provenance(kind, {}, []).write(made, **more)
    for name, seconds in zip(names, (1800, 900, 36), strict=True):
        facts = json.loads(Path(name).read_text(encoding="utf-8")) | {"seconds": seconds}
        facts |= {"git_revision": "abc1234"}
        if "5way" in name:
            facts |= {"git_revision": None, "packages": facts["packages"] | {"torch": "1.0"}}
        Path(name).write_text(json.dumps(facts), encoding="utf-8")
    return EnvironmentConfig(stage_version=1, title="What it ran on", metas=names)


def rows_of(text):
    return [
        tuple(re.findall(r"<t[hd](?: [^>]*)?>(.*?)</t[hd]>", row))
        for row in re.findall(r"<tr>(.*?)</tr>", text)
    ]


def test_hours_are_added_up_and_values_counted_where_jobs_differ(stage):
    environment.run(stage, Path("reports/environment.html"))
    rows = rows_of(Path("reports/environment.html").read_text(encoding="utf-8"))
    assert ("pretrain", "2", "0.750") in rows
    assert ("evaluate", "1", "0.010") in rows
    assert ("revision of the code", "abc1234", "2") in rows
    assert ("revision of the code", "no git", "1") in rows
    assert ("torch", "1.0", "1") in rows
    assert ("device", "a CPU &lt;8&gt;", "2") in rows
    numpy = [row for row in rows if row[0] == "numpy"]
    assert [count for _, _, count in numpy] == ["3"]


def test_the_page_depends_on_nothing_but_the_metas(stage):
    for name in ("one.html", "two.html"):
        environment.run(stage, Path(name))
    text = Path("one.html").read_text(encoding="utf-8")
    assert Path("two.html").read_text(encoding="utf-8") == text
    assert str(Path.cwd()) not in text
    assert not re.search(r"src=|href=|<script", text)
