"""Config files that are no YAML, and values that are no numbers, are told in one line."""

import json
import shutil
import subprocess
import sys
import time
from pathlib import Path

import pytest

from epcore.backbones.config import BackboneConfig
from epcore.commands import cli
from epcore.config.load import parse_yaml
from epcore.data.config import View
from epcore.errors import UserError
from epcore.plan import Plan
from epcore.settings import validate

ROOT = Path(__file__).parents[2]


UNREADABLE = {
    "a placeholder": ("data_root: {{ root }}", "line 1: .*a key is a text"),
    "a list for a key": ("? [a, b]\n: 1", "line 1: .*a key is a text"),
    "a mapping for a key": ("x: 1\n? {a: b}\n: 1", "line 2: .*a key is a text"),
    "an alias of nothing": ("a: *b", "undefined alias"),
    "a day that there is not": ("a: 2020-13-45", "month must be in 1..12"),
    "a tag": ("a: !!python/object/apply:os.system [id]", "could not determine a constructor"),
    "control characters": ("a: \x00", "this is not valid YAML"),
}


@pytest.mark.parametrize("kind", UNREADABLE)
def test_yaml_that_cannot_be_read_ends_in_one_line(kind):
    text, message = UNREADABLE[kind]
    with pytest.raises(UserError, match=rf"^some\.yaml.*{message}") as caught:
        parse_yaml(text, "some.yaml")
    assert "\n" not in str(caught.value)
    assert len(str(caught.value)) < 500


def test_aliases_and_merged_keys_as_people_write_them_are_read():
    text = "a: &a [1, 2]\nb: *a\nc: &c {d: *a}\ne: {<<: *c, f: 1}"
    assert parse_yaml(text, "") == {
        "a": [1, 2], "b": [1, 2], "c": {"d": [1, 2]}, "e": {"d": [1, 2], "f": 1},
    }  # fmt: skip


@pytest.mark.parametrize(
    "width",
    ["1e999999999", "1e-999999999", "1E9999", "9" * 5000, "1/" + "9" * 5000, "0." + "9" * 5000,
     "1_0e9_9", "-1/4", "nan", "inf", "1/0", float("inf"), float("nan"), True, [1], None, "¼"],
)  # fmt: skip
def test_a_ratio_that_is_none_is_told_at_once(width):
    began = time.monotonic()
    for model, key in ((BackboneConfig, "width"), (View, "crop")):
        content = {"architecture": "conv4", "width": 1, "resize": 1, "crop": 1, key: width}
        content = {name: content[name] for name in model.model_fields if name in content}
        with pytest.raises(UserError, match=rf"{key}: expected a ratio such as 1/4 or 0\.25") as e:
            validate(model, content, "some.yaml")
        assert len(str(e.value)) < 500
    assert time.monotonic() - began < 2


@pytest.mark.parametrize(("text", "exact"), [("92/84", "23/21"), (0.25, "1/4"), (1, "1"), (2, "2")])
def test_a_ratio_as_people_write_it_is_exact(text, exact):
    backbone = validate(BackboneConfig, {"architecture": "conv4", "width": text}, "")
    assert str(backbone.width) == exact


def test_a_value_that_is_long_is_shown_in_part(tmp_path, capsys):
    config = json.dumps({"stage_version": "x" * 100_000, "dataset": {}})
    assert cli.main(["data", "--config", config, "--out", str(tmp_path / "out")]) == 2
    assert len(capsys.readouterr().err) < 500


@pytest.mark.parametrize("kind", ["a placeholder", "a tag"])
def test_such_a_file_of_a_project_is_named(config, kind):
    (config / "scales" / "demo.yaml").write_text(UNREADABLE[kind][0])
    with pytest.raises(UserError, match=r"config/scales/demo\.yaml, line 1: "):
        Plan(config, "demo").check()


@pytest.mark.slow
def test_a_checkout_with_braces_in_its_path_is_refused_before_any_work(tmp_path):
    folder = tmp_path / "a {checkout}"
    folder.mkdir()
    shutil.copy(ROOT / "Snakefile", folder)
    for name in ("config", "workflow", "profiles"):
        shutil.copytree(ROOT / name, folder / name)
    command = [sys.executable, "-m", "snakemake", "--cores", "1", "tables/main.tex"]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert f"epcore: the path {folder} has braces, " in done.stderr
    assert "Traceback" not in done.stderr
    assert not (folder / "results").exists()
