"""JSON schemas of the config files, for editors and for the reference of the documentation."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any, get_args

from pydantic import BaseModel, TypeAdapter
from pydantic.json_schema import GenerateJsonSchema
from pydantic_core import CoreSchema

from epcore.files import write_text
from epcore.plan.claim_models import ClaimSettings
from epcore.plan.compared_models import ComparedMethod
from epcore.plan.datasets import DataSources
from epcore.plan.figure_models import FigureSettings
from epcore.plan.footprint import FootprintSettings
from epcore.plan.imagenet_fs_models import ImageNetFsScale, ImageNetFsSettings
from epcore.plan.plots import PlotSettings
from epcore.plan.recipe_models import (
    BackboneInfo,
    ClassifierChoice,
    Phase,
    Propagation,
    RecipeSettings,
)
from epcore.plan.scale_models import MainConfig, Protocol, Scale
from epcore.plan.table_models import Table

Schema = dict[str, Any]
DIALECT = "https://json-schema.org/draft/2020-12/schema"


class _WithoutFieldTitles(GenerateJsonSchema):
    """A key is called by its name."""

    def field_title_should_be_set(self, schema: Any) -> bool:
        return False

    def model_schema(self, schema: Any) -> Schema:
        """A key that has one value alone, such as `kind`, says what that is."""
        made = super().model_schema(schema)
        for key in made.get("properties", {}).values():
            if "const" in key:
                key.setdefault("description", made["description"])
        return made

    def fraction_schema(self, schema: CoreSchema) -> Schema:
        return {"anyOf": [{"type": "string"}, {"type": "number"}]}


def _of(kind: Any) -> Schema:
    return TypeAdapter(kind).json_schema(schema_generator=_WithoutFieldTitles)


def _partial(schema: Schema) -> Schema:
    """The same, but that every key may be left out, or be null, which deletes it."""
    if not isinstance(schema, dict):
        return schema
    found: Schema = {}
    for key, value in schema.items():
        if key == "required":
            continue
        if key == "properties":
            found[key] = {name: _nullable(_partial(each)) for name, each in value.items()}
        elif key == "additionalProperties":
            found[key] = value if isinstance(value, bool) else _nullable(_partial(value))
        elif isinstance(value, dict):
            found[key] = _partial(value)
        elif isinstance(value, list):
            # Without the keys that must be there several kinds may fit.
            found["anyOf" if key == "oneOf" else key] = [_partial(each) for each in value]
        else:
            found[key] = value
    return found


def _nullable(schema: Schema) -> Schema:
    said = {"description": schema["description"]} if "description" in schema else {}
    return {"anyOf": [schema, {"type": "null"}]} | said


def _named(kind: type[BaseModel], **more: Schema) -> tuple[Schema, Schema]:
    """Partial settings of a model with more keys, and the definitions that they refer to."""
    schema = _partial(_of(kind))
    definitions = schema.pop("$defs", {})
    return schema | {"properties": schema["properties"] | more}, definitions


def _entries(of: Schema, **more: Any) -> Schema:
    """A mapping of names to what `of` describes."""
    return {"type": "object", "additionalProperties": of} | more


def _reference(kind: type[BaseModel]) -> Schema:
    return {"$ref": f"#/$defs/{kind.__name__}"}


TEXT: Schema = {"type": "string"}


def _recipe(**more: Schema) -> tuple[Schema, Schema]:
    """A partial recipe; under `backbones` stands what holds for one of them alone."""
    phases = {
        "type": "object",
        "properties": {
            phase: _nullable(_reference(Propagation) | {"description": f"in {phase} alone"})
            for phase in get_args(Phase)
        },
        "additionalProperties": False,
        "description": "other settings of propagation in one phase",
    }
    whole, definitions = _named(RecipeSettings, phases=phases)
    special = _entries(_reference(RecipeSettings), description="what holds for one backbone alone")
    own = whole | {"properties": whole["properties"] | {"backbones": special} | more}
    return own, definitions | {RecipeSettings.__name__: whole}


def _recipes() -> Schema:
    extends = TEXT | {"description": "the entry that this one starts from"}
    candidates = {
        "type": "object",
        "description": "settings of which validation chooses, for each phase",
    }
    preset, definitions = _recipe(extends=extends)
    protocol = TEXT | {"description": "the reading of the paper that it follows"}
    told = TEXT | {"description": "what it is, in a line"}
    recipe, _ = _recipe(extends=extends, protocol=protocol, description=told, candidates=candidates)
    return {
        "description": "Partial recipes: a protocol reads the paper one way, a recipe changes it.",
        "type": "object",
        "properties": {
            "protocols": _entries(preset, description="readings of the paper"),
            "recipes": _entries(recipe, description="what is trained and tested"),
        },
        "required": ["protocols", "recipes"],
        "additionalProperties": False,
        "$defs": definitions,
    }


def _scale() -> Schema:
    recipe, of_recipe = _recipe()
    imagenet_fs, of_imagenet_fs = _named(ImageNetFsScale)
    schema, definitions = _named(
        Scale,
        extends=TEXT | {"description": "the scale that this one starts from"},
        recipe=_nullable(recipe | {"description": "settings that override every recipe"}),
        imagenet_fs=_nullable(imagenet_fs),
    )
    return schema | {"$defs": definitions | of_recipe | of_imagenet_fs}


def _compared() -> Schema:
    extends = TEXT | {"description": "the entry that this one starts from"}
    entry, definitions = _named(ComparedMethod, extends=extends)
    return _entries(entry) | {"$defs": definitions}


# Config file, or folder of such files -> its schema.
SCHEMAS: dict[str, Callable[[], Schema]] = {
    "backbones": lambda: _of(dict[str, BackboneInfo]),
    "claims": lambda: _of(ClaimSettings),
    "classifiers": lambda: _of(dict[str, ClassifierChoice]),
    "compared": _compared,
    "config": lambda: _of(MainConfig),
    "datasets": lambda: _of(DataSources),
    "figures": lambda: _of(FigureSettings),
    "footprint": lambda: _of(FootprintSettings),
    "imagenet-fs": lambda: _of(ImageNetFsSettings),
    "plots": lambda: _of(PlotSettings),
    "protocols": lambda: _of(dict[str, Protocol]),
    "recipes": _recipes,
    "scales": _scale,
    "tables": lambda: _of(Table),
}


def schema_of(name: str) -> Schema:
    """The JSON schema of a config file without its ending, or of the files of a folder."""
    return {"$schema": DIALECT} | SCHEMAS[name]()


def run(settings: Path) -> None:
    """The command `epcore schema`: writes all schemas into `schemas` of the config folder."""
    folder = settings / "schemas"
    folder.mkdir(exist_ok=True)
    for name in SCHEMAS:
        text = json.dumps(schema_of(name), indent=1, ensure_ascii=False)
        write_text(folder / f"{name}.json", f"{text}\n")
    print(f"{len(SCHEMAS)} schemas are in {folder}")
