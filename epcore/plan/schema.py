"""JSON schemas of the config files, for editors and for the reference of the documentation."""

import json
from pathlib import Path
from typing import Any

from pydantic import TypeAdapter
from pydantic.json_schema import GenerateJsonSchema
from pydantic_core import CoreSchema

from epcore.errors import UserError
from epcore.files import write_text
from epcore.plan.claim_models import ClaimSettings
from epcore.plan.compared_models import ComparedPart
from epcore.plan.datasets import DataSources
from epcore.plan.figure_models import FigureSettings
from epcore.plan.footprint import FootprintSettings
from epcore.plan.imagenet_fs_models import ImageNetFsSettings
from epcore.plan.partial import EXTENDS, optional
from epcore.plan.plots import PlotSettings
from epcore.plan.recipe_models import BackboneInfo, ClassifierChoice, RecipeSources
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


# Config file, or folder of such files -> what it holds.
SCHEMAS: dict[str, Any] = {
    "backbones": dict[str, BackboneInfo],
    "claims": ClaimSettings,
    "classifiers": dict[str, ClassifierChoice],
    "compared": dict[str, ComparedPart],
    "config": MainConfig,
    "datasets": DataSources,
    "figures": FigureSettings,
    "footprint": FootprintSettings,
    "imagenet-fs": ImageNetFsSettings,
    "plots": PlotSettings,
    "protocols": dict[str, Protocol],
    "recipes": RecipeSources,
    "scales": optional(Scale, EXTENDS),
    "tables": Table,
}


def schema_of(name: str) -> Schema:
    """The JSON schema of a config file without its ending, or of the files of a folder."""
    made = TypeAdapter(SCHEMAS[name]).json_schema(schema_generator=_WithoutFieldTitles)
    return {"$schema": DIALECT} | made


def run(settings: Path) -> None:
    """The command `epcore schema`: writes all schemas into `schemas` of the config folder.

    Raises:
        UserError: if there is no config folder.
    """
    if not settings.is_dir():
        raise UserError(
            f"there is no folder {settings}; run this where the Snakefile is, or say --settings "
            "FOLDER"
        )
    folder = settings / "schemas"
    folder.mkdir(exist_ok=True)
    for name in SCHEMAS:
        text = json.dumps(schema_of(name), indent=1, ensure_ascii=False)
        write_text(folder / f"{name}.json", f"{text}\n")
    print(f"{len(SCHEMAS)} schemas are in {folder}")
