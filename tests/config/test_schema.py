"""JSON schemas: named by every config file, and as strict as an editor needs them."""

import json
import re
from pathlib import Path

import pytest
import yaml
from jsonschema import Draft202012Validator

from epcore.commands.cli import main
from epcore.config.schema import SCHEMAS, schema_of

CONFIG = Path(__file__).parents[2] / "config"
FILES = sorted(CONFIG.rglob("*.yaml"))


def problems(name, content):
    """Where it is wrong, and what an editor says."""
    errors = Draft202012Validator(schema_of(name)).iter_errors(content)
    return [(".".join(map(str, error.absolute_path)), error.message) for error in errors]


def named(path):
    """The schema that a config file's first line names."""
    first = path.read_text(encoding="utf-8").splitlines()[0]
    found = re.fullmatch(r"# yaml-language-server: \$schema=(\S+)", first)
    assert found, f"{path}: its first line names no schema"
    return (path.parent / found[1]).resolve()


def test_the_install_step_writes_them_beside_the_config(tmp_path):
    assert main(["schema", "--settings", str(tmp_path)]) == 0
    made = {path.stem: json.loads(path.read_text()) for path in (tmp_path / "schemas").iterdir()}
    assert made == {name: schema_of(name) for name in SCHEMAS}


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(CONFIG)))
def test_every_config_file_names_its_schema_and_fits_it(path):
    schema = named(path)
    assert schema.parent == CONFIG / "schemas"
    errors = problems(schema.stem, yaml.safe_load(path.read_text(encoding="utf-8")))
    assert errors == []


# As an editor would see them: schema, file, keys of the place, another value.
MISTAKES = [
    ("scales", "scales/demo.yaml", ["recipe", "pretraining", "epoch"], 3),
    ("recipes", "recipes.yaml", ["recipes", "epnet", "backbones"], {"conv4": {"wiev": {}}}),
    ("config", "config.yaml", ["seeds"], []),
]


@pytest.mark.parametrize(("name", "file", "keys", "value"), MISTAKES)
def test_a_mistake_is_seen(name, file, keys, value):
    content = yaml.safe_load((CONFIG / file).read_text(encoding="utf-8"))
    place = content
    for key in keys[:-1]:
        place = place.setdefault(key, {})
    place[keys[-1]] = value
    assert problems(name, content)


@pytest.mark.parametrize("changes", [{"backbones": {"resnet12": None}}, {"extends": "demo"}])
def test_a_scale_may_hold_no_more_than_what_it_changes(changes):
    assert problems("scales", changes) == []


@pytest.mark.parametrize("seeds", [3, [0, 7]])
def test_seeds_are_a_number_of_trainings_or_listed(seeds):
    content = yaml.safe_load((CONFIG / "config.yaml").read_text(encoding="utf-8"))
    assert problems("config", content | {"seeds": seeds}) == []


def undescribed(schema, at=""):
    """The keys of a schema, and of what it defines, that say nothing of themselves."""
    if isinstance(schema, list):
        return [found for each in schema for found in undescribed(each, at)]
    if not isinstance(schema, dict):
        return []
    keys = schema.get("properties", {})
    lost = [f"{at}.{name}" for name, each in keys.items() if not each.get("description")]
    below = [undescribed(each, f"{at}.{name}") for name, each in keys.items()]
    below += [undescribed(each, at) for key, each in schema.items() if key != "properties"]
    return lost + [found for each in below for found in each]


@pytest.mark.parametrize("name", SCHEMAS)
def test_every_key_says_what_it_is(name):
    assert undescribed(schema_of(name)) == []
