"""JSON schemas of the config files, for editors and for the reference of the documentation."""

import json
from pathlib import Path
from typing import Any

from pydantic import Field, TypeAdapter
from pydantic.json_schema import GenerateJsonSchema
from pydantic_core import CoreSchema

from epcore.config.claims import ClaimSettings
from epcore.config.compared import ComparedMethod, ComparedScale, TrainedMethod
from epcore.config.datasets import DataSources
from epcore.config.figures import FigureSettings, PlotSettings
from epcore.config.imagenet_fs import ImageNetFsSettings
from epcore.config.recipes import (
    BackboneInfo,
    Candidates,
    ClassifierChoice,
    RecipeSettings,
)
from epcore.config.scale import MainConfig, Protocol, Scale
from epcore.errors import UserError
from epcore.files import write_text
from epcore.footprint.config import FootprintSettings
from epcore.report.table_settings import Table
from epcore.settings import Settings
from epcore.training.config import EpisodicTraining

Schema = dict[str, Any]
DIALECT = "https://json-schema.org/draft/2020-12/schema"
EXTENDS = Field(description="the entry that this one starts from")


class ChangedRecipe(RecipeSettings):
    """Changes to the settings of a recipe."""

    backbones: dict[str, RecipeSettings] = Field(description="what holds for one backbone alone")


class RecipeEntry(ChangedRecipe):
    """An entry of recipes.yaml."""

    extends: str = EXTENDS
    protocol: str = Field(description="the reading of the paper that it follows")
    description: str = Field(description="what it is, in a line")
    candidates: Candidates = Field(description="settings of which validation chooses")


class RecipeFile(Settings):
    """A protocol reads the paper one way, a recipe changes it."""

    protocols: dict[str, RecipeEntry] = Field(description="readings of the paper")
    recipes: dict[str, RecipeEntry] = Field(description="what is trained and tested")


class ChangedMethod(ComparedMethod):
    """Changes to an entry of compared.yaml."""

    datasets: dict[str, TrainedMethod] = Field(
        description="name of a data set -> what differs there of `method` and `training`; what a "
        "scale changes of them holds there too"
    )


class ComparedEntry(ChangedMethod):
    """An entry of compared.yaml."""

    extends: str = EXTENDS


class ComparedChanges(ComparedScale):
    """What a scale changes of compared.yaml."""

    training: EpisodicTraining = Field(  # type: ignore[assignment]
        description="settings of the training of all methods"
    )
    methods: dict[str, ChangedMethod] = Field(  # type: ignore[assignment]
        description="name of a method -> settings of it alone"
    )


class ScaleFile(Scale):
    """What one run of the pipeline covers."""

    extends: str = Field(description="the scale that this one starts from")
    recipe: ChangedRecipe = Field(  # type: ignore[assignment]
        description="settings that override every recipe"
    )
    compared: ComparedChanges = Field(description="what it changes of compared.yaml")


class _WithoutFieldTitles(GenerateJsonSchema):
    """A key is called by its name."""

    def field_title_should_be_set(self, schema: Any) -> bool:
        return False

    def model_schema(self, schema: Any) -> Schema:
        """A key that has one value alone, such as `kind`, says what that is."""
        schema_of_model = super().model_schema(schema)
        for key in schema_of_model.get("properties", {}).values():
            if "const" in key:
                key.setdefault("description", schema_of_model["description"])
        return schema_of_model

    def fraction_schema(self, schema: CoreSchema) -> Schema:
        return {"anyOf": [{"type": "string"}, {"type": "number"}]}


# Config file, or folder of such files -> what it holds.
WHOLE: dict[str, Any] = {
    "backbones": dict[str, BackboneInfo],
    "claims": ClaimSettings,
    "classifiers": dict[str, ClassifierChoice],
    "config": MainConfig,
    "datasets": DataSources,
    "figures": FigureSettings,
    "footprint": FootprintSettings,
    "imagenet-fs": ImageNetFsSettings,
    "plots": PlotSettings,
    "protocols": dict[str, Protocol],
    "tables": Table,
}
# What a value of compared.yaml may be instead: one for each shot.
EACH_SHOT = {
    "type": "object",
    "minProperties": 1,
    "patternProperties": {r"^[1-9]\d*-shot$": {}},
    "additionalProperties": False,
}
# Files whose entries are laid over others: any key may be missing, and null deletes one.
PARTIAL: dict[str, Any] = {
    "compared": dict[str, ComparedEntry],
    "recipes": RecipeFile,
    "scales": ScaleFile,
}
SCHEMAS = sorted([*WHOLE, *PARTIAL])


def schema_of(name: str) -> Schema:
    """The JSON schema of a config file without its ending, or of the files of a folder."""
    adapter = TypeAdapter((WHOLE | PARTIAL)[name])
    schema = adapter.json_schema(schema_generator=_WithoutFieldTitles)
    return {"$schema": DIALECT} | (_partial(schema) if name in PARTIAL else schema)


def _partial(schema: Any) -> Any:
    """The schema with no key required, and null allowed for each."""
    if isinstance(schema, list):
        return [_partial(part) for part in schema]
    if not isinstance(schema, dict):
        return schema
    partial = {key: _partial(value) for key, value in schema.items() if key != "required"}
    if "properties" in partial:
        partial["properties"] = {
            key: _or_null(value) for key, value in partial["properties"].items()
        }
    if isinstance(partial.get("additionalProperties"), dict):
        partial["additionalProperties"] = _or_null(partial["additionalProperties"])
    return partial


def _or_null(schema: Schema) -> Schema:
    described = {key: schema[key] for key in ("description",) if key in schema}
    return described | {"anyOf": [schema, {"type": "null"}, EACH_SHOT]}


def run(settings: Path) -> None:
    """The command `epcore schema`: writes all schemas into `schemas` of the config folder.

    Raises:
        UserError: if there is no config folder.
    """
    if not settings.is_dir():
        raise UserError(
            f"there is no folder {settings}",
            "run this where the Snakefile is, or say --settings FOLDER",
        )
    folder = settings / "schemas"
    folder.mkdir(exist_ok=True)
    for name in SCHEMAS:
        text = json.dumps(schema_of(name), indent=1, ensure_ascii=False)
        write_text(folder / f"{name}.json", f"{text}\n")
    print(f"{len(SCHEMAS)} schemas are in {folder}")
