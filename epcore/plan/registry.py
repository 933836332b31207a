"""The names that config files define, seen at one scale, with everything merged and validated."""

from collections.abc import Iterable, Mapping
from functools import cached_property
from pathlib import Path
from typing import Any

import yaml

from epcore.backbones.config import BackboneConfig, check_pixels, check_sizes
from epcore.config.datasets import DataSources
from epcore.config.load import extend, read, read_yaml
from epcore.config.names import Name
from epcore.config.recipes import BackboneInfo
from epcore.config.resources import JobResources
from epcore.config.scale import (
    CountedSeeds,
    MainConfig,
    Protocol,
    Scale,
    ScaledBackbone,
)
from epcore.data.config import View
from epcore.data.datasets import OfficialData, Source
from epcore.errors import UserError
from epcore.footprint.config import FootprintSettings
from epcore.plan.checks import check_unique, short_path
from epcore.plan.recipes import Recipes
from epcore.settings import pick, validate


class Registry:
    """The config folder seen at one scale.

    All methods raise `UserError` that names the file, the key and the remedy.

    Args:
        config: the folder `config/`.
        scale: a file of `config/scales/` or `config/examples/`, without its ending.
        seeds: those of trainings, or how many; those of the scale unless they are given.
    """

    def __init__(self, config: Path, scale: str, seeds: Any = None) -> None:
        self.config, self.scale_name = config, scale
        files = _scale_files(config)
        _check_is_text(scale, files)
        location = f"--scale, --config or {config.name}/config.yaml"
        self.scale_file = short_path(pick(files, scale, "scale", location))
        validate(Name, scale, self.scale_file)
        content = extend(files, scale, "scale", self.scale_file, read_yaml)
        advice = "; add it, or `extends:` with the name of a scale that has it"
        self.scale: Scale = validate(Scale, content, self.scale_file, advice)
        location = "config/config.yaml or --config, seeds"
        self.seeds = self.scale.seeds if seeds is None else validate(CountedSeeds, seeds, location)
        registry = read_datasets(config)
        self.sources = registry.sources
        self.datasets: dict[str, Any] = registry.datasets | self.scale.datasets
        self.backbones = read(config, "backbones.yaml", dict[Name, BackboneInfo])
        self.protocols = read(config, "protocols.yaml", dict[Name, Protocol])
        self.recipes = Recipes(config, self.scale, self.scale_file, self.backbones)
        self._cross_check()

    def path(self, pattern: str, **names: Any) -> str:
        """A file of the scale, by its pattern in `epcore.plan.paths`."""
        return pattern.format(scale=self.scale_name, **names)

    def _cross_check(self) -> None:
        location = self.scale_file
        for name, settings in self.scale.datasets.items():
            _check_sources(settings, self.sources, f"{location}, datasets.{name}")
        for column, dataset in self.scale.columns.items():
            pick(self.datasets, dataset, "data set", f"{location}, columns.{column}")
        for name in self.scale.backbones:
            pick(self.backbones, name, "backbone", f"{location}, backbones")
        place = f"{self.config.name}/protocols.yaml"
        for name, protocol in self.protocols.items():
            validation = protocol.chosen_on or f"val-{name}"
            if protocol.chosen_on:
                pick(self.protocols, validation, "protocol", f"{place}, {name}.chosen_on")
            if validation in self.protocols and self.protocols[validation].split != "val":
                raise UserError(
                    f"{place}, {name}: settings of classifiers would be chosen on "
                    f"{validation}, whose classes are tested on",
                    "let chosen_on name a protocol of split val",
                )
        compared = f"{self.config.name}/compared.yaml"
        for name in self.recipes.compared:
            special = self.recipes.special_datasets(name)
            for dataset in special:
                pick(self.datasets, dataset, "data set", f"{compared}, {name}.datasets")
            for dataset in ("", *special):
                method = self.recipes.compared_method(name, dataset)
                if method.pretrained is not None:
                    self.recipes.check(method.pretrained, f"{compared}, {name}.pretrained")

    def backbone(self, name: str) -> BackboneConfig:
        """The backbone at this scale's width and depth."""
        size = pick(self.scale.backbones, name, "backbone", f"{self.scale_file}, backbones")
        architecture = self.backbones[name].architecture
        return BackboneConfig(architecture=architecture, width=size.width, depth=size.depth)

    def network(
        self, backbone: BackboneConfig, view: View, resources: JobResources
    ) -> dict[str, Any]:
        """The part of a config that all stages have that run a network over images."""
        return {
            "backbone": backbone,
            "view": view,
            "precision": self.scale.precision,
            "threads": resources.threads,
        }

    def sized(self, backbone: str) -> str:
        """A backbone's label, with its size where this scale makes it smaller."""
        size = self.scale.backbones.get(backbone, ScaledBackbone())
        return f"{self.backbones[backbone].label}{size.shown}"

    def data_and_network(self, dataset: str | None, network: str) -> str:
        """What numbers of this scale are of: "Scale demo: rendered characters, Conv-4"."""
        caption = self.datasets[dataset].caption if dataset else "no data"
        return f"Scale {self.scale_name}: {caption}, {network}"

    @cached_property
    def footprint(self) -> FootprintSettings:
        """The file footprint.yaml."""
        return read(self.config, "footprint.yaml", FootprintSettings)

    def check_recipes(self, names: Iterable[str]) -> None:
        """Raises `UserError` unless these recipes resolve, for backbones that can be built."""
        for backbone in self.scale.backbones:
            network = self.backbone(backbone)
            check_sizes(network, f"{self.scale_file}, backbones.{backbone}")
            for recipe in names:
                crop = self.recipes.resolve(recipe, backbone).view.crop
                for column, dataset in self.scale.columns.items():
                    pixels = round(self.datasets[dataset].image_size * crop)
                    check_pixels(network, pixels, f"{self.scale_file}, columns.{column}")

    def shown_datasets(self) -> list[str]:
        """The data sets of this scale's columns; for the demo, all that can be drawn."""
        glyphs = [name for name, dataset in self.datasets.items() if dataset.kind == "glyphs"]
        used = list(self.scale.columns.values())
        return sorted({*used, *glyphs} if set(used) & set(glyphs) else used)


def _scale_files(config: Path) -> dict[str, Path]:
    """Scale -> its file."""
    folders = (config / "scales", config / "examples")
    paths = [path for folder in folders for path in sorted(folder.glob("*.yaml"))]
    places = dict.fromkeys(short_path(path.parent) for path in paths)
    check_unique([path.stem for path in paths], "scale", " and ".join(places))
    return {path.stem: path for path in paths}


def _check_is_text(scale: str, files: Mapping[str, Path]) -> None:
    """Raises `UserError` for a scale whose name YAML reads as a number, such as 007."""
    for name, path in files.items():
        value = yaml.safe_load(name)
        if str(value) == scale and not isinstance(value, str):
            raise UserError(
                f"{short_path(path)}: in `--config scale={name}` the name is read as {value!r}",
                "rename the file so that it begins with a letter",
            )


def main_config(config: Path, overrides: Mapping[str, Any] | None = None) -> MainConfig:
    """The file config.yaml of the folder `config`, with what a command line says instead.

    Raises:
        UserError: if it cannot be read, lacks a key, or has one that is unknown or wrong.
    """
    content = read_yaml(config / "config.yaml") | dict(overrides or {})
    return validate(MainConfig, content, f"{config.name}/config.yaml or --config")


def read_datasets(config: Path) -> DataSources:
    """The file datasets.yaml of the folder `config`: data sets and the sources of their files.

    Raises:
        UserError: that names the file, the key and the remedy.
    """
    file = short_path(config / "datasets.yaml")
    registry = validate(DataSources, read_yaml(config / "datasets.yaml"), file)
    for name, dataset in registry.datasets.items():
        _check_sources(dataset, registry.sources, f"{file}, datasets.{name}")
    return registry


def _check_sources(dataset: Any, sources: Mapping[str, Source], location: str) -> None:
    if isinstance(dataset, OfficialData):
        for name in dataset.sources:
            pick(sources, name, "source", location)
