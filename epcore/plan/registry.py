"""The names that config files define, seen at one scale, with everything merged and validated."""

import contextlib
import re
from collections import Counter
from collections.abc import Mapping
from functools import cache, cached_property
from pathlib import Path
from typing import Any, get_args

from epcore.errors import UserError
from epcore.plan.compared_models import METHODS, ComparedMethod
from epcore.plan.datasets import DataSources, OfficialData, Source
from epcore.plan.footprint import FootprintSettings, read_footprint
from epcore.plan.load import check_keys, extend, merge, pick, read_yaml, suggest, validate
from epcore.plan.network import check_pixels, check_sizes
from epcore.plan.paths import NAME
from epcore.plan.printed import Shown
from epcore.plan.recipe_models import (
    Backbone,
    BackboneInfo,
    ClassifierChoice,
    Finetuning,
    Phase,
    Pretraining,
    Propagation,
    Recipe,
    RecipeSettings,
    RecipeSources,
    TrainingPhase,
)
from epcore.plan.scale_models import Protocol, Scale, ScaledBackbone, Seeds, TablePart
from epcore.plan.table_models import Block, Column, Row, Table

# Recipe -> phase -> its candidates.
Selections = dict[str, dict[str, tuple[str, ...]]]
CANDIDATES: dict[str, type[Pretraining | Finetuning]] = {
    "pretraining": Pretraining,
    "finetuning": Finetuning,
}


class Registry:
    """The config folder seen at one scale.

    All methods raise `UserError` that names the file, the key and the remedy.

    Args:
        config: the folder `config/`.
        scale: a file of `config/scales/` or `config/examples/`, without its ending.
        seeds: those of trainings, or how many; the scale's, unless they are given.
    """

    def __init__(self, config: Path, scale: str, seeds: Any = None) -> None:
        self.config, self.scale_name = config, scale
        self._scale_path = self._find_scale()
        self.scale_file = _shown(self._scale_path)
        self.scale = self._load_scale()
        self.seeds = self.scale.seeds if seeds is None else _seeds(seeds)
        registry = read_datasets(config)
        self.sources = registry.sources
        self.datasets: dict[str, Any] = registry.datasets | self.scale.datasets
        self.backbones = self._read("backbones.yaml", BackboneInfo)
        self.protocols = self._read("protocols.yaml", Protocol)
        self.classifiers = read_classifiers(config)
        self._check_names()

    @property
    def _scale_paths(self) -> list[Path]:
        folders = (self.config / "scales", self.config / "examples")
        return [path for folder in folders for path in sorted(folder.glob("*.yaml"))]

    def _find_scale(self) -> Path:
        paths = self._scale_paths
        files = {path.stem: path for path in paths}
        folders = dict.fromkeys(_shown(path.parent) for path in paths)
        _check_unique([path.stem for path in paths], "scale", " and ".join(folders))
        path = pick(
            files, self.scale_name, "scale", f"--scale, --config or {self.config.name}/config.yaml"
        )
        check_name(self.scale_name, _shown(path))
        return path

    def _load_scale(self) -> Scale:
        files = {path.stem: path for path in self._scale_paths}
        content = extend(files, self.scale_name, "scale", self.scale_file, read_yaml)
        scale: Scale = validate(Scale, content, self.scale_file)
        return scale

    def _read(self, name: str, kind: Any) -> dict[str, Any]:
        content = read_yaml(self.config / name)
        return validate(dict[str, kind], content, f"{self.config.name}/{name}")

    def _check_names(self) -> None:
        named = {
            "datasets.yaml": self.sources | self.datasets,
            "backbones.yaml": self.backbones,
            "protocols.yaml": self.protocols,
            "classifiers.yaml": self.classifiers,
            "recipes.yaml": self._recipe_sources[1],
            "compared.yaml": self.compared,
        }
        for file, registry in named.items():
            for name in registry:
                place = f"{self.config.name}/{file}"
                if file == "datasets.yaml" and name in self.scale.datasets:
                    place = f"{self.scale_file}, datasets"
                check_name(name, place)
        where = self.scale_file
        for name, own in self.scale.datasets.items():
            _check_sources(own, self.sources, f"{where}, datasets.{name}")
        for column, dataset in self.scale.columns.items():
            pick(self.datasets, dataset, "data set", f"{where}, columns.{column}")
        # Also those that it takes away: `null` for a misspelt name would leave the backbone in.
        written = read_yaml(self._scale_path).get("backbones")
        for name in {**self.scale.backbones, **(written if isinstance(written, dict) else {})}:
            pick(self.backbones, name, "backbone", f"{where}, backbones")
        for name in self.compared:
            if name in self._recipe_sources[1]:
                raise UserError(
                    f"{self.config.name}/compared.yaml: {name!r} is in recipes.yaml too; rename it"
                )
        for name in self.scale.classifiers or ():
            pick(self.classifiers, name, "entry of classifiers.yaml", f"{where}, classifiers")

    def backbone(self, name: str) -> Backbone:
        """The backbone at this scale's width and depth."""
        size = pick(self.scale.backbones, name, "backbone", f"{self.scale_file}, backbones")
        architecture = self.backbones[name].architecture
        return Backbone(architecture=architecture, width=size.width, depth=size.depth)

    def sized(self, backbone: str) -> str:
        """A backbone's label, with its size where this scale makes it smaller."""
        size = self.scale.backbones.get(backbone, ScaledBackbone())
        return f"{self.backbones[backbone].label}{size.shown}"

    @cached_property
    def _recipe_sources(self) -> tuple[dict[str, Any], dict[str, Any], Selections]:
        """Protocols, recipes with all candidates, and which recipes are chosen from them."""
        where = f"{self.config.name}/recipes.yaml"
        content = read_yaml(self.config / "recipes.yaml")
        sources = validate(RecipeSources, content, where)
        for name, settings in sources.protocols.items():
            self._check_recipe(settings, f"{where}, protocols.{name}", ("extends",))
        for name, settings in sources.recipes.items():
            named = ("extends", "protocol", "description", "candidates")
            self._check_recipe(settings, f"{where}, recipes.{name}", named)
            self._check_candidates(settings, f"{where}, recipes.{name}.candidates")
        self._check_recipe(self.scale.recipe, f"{self.scale_file}, recipe", ())
        return sources.protocols, *_with_candidates(sources.recipes, where)

    def _check_recipe(self, settings: dict[str, Any], where: str, also: tuple[str, ...]) -> None:
        """Misspelt or misplaced keys of a partial recipe, at any depth."""
        check_keys(RecipeSettings, settings, where, also=("backbones", *also))
        special = validate(dict[str, Any], settings.get("backbones") or {}, f"{where}, backbones")
        for backbone, changes in special.items():
            pick(self.backbones, backbone, "backbone", f"{where}, backbones")
            check_keys(RecipeSettings, changes or {}, f"{where}, backbones.{backbone}")
        phases = validate(dict[str, Any], settings.get("phases") or {}, f"{where}, phases")
        for phase, partial in phases.items():
            pick(dict.fromkeys(get_args(Phase)), phase, "phase", f"{where}, phases")
            check_keys(Propagation, partial or {}, f"{where}, phases.{phase}")

    @staticmethod
    def _check_candidates(settings: dict[str, Any], where: str) -> None:
        named = settings.get("candidates") or {}
        grid = validate(dict[str, dict[str, dict[str, Any]] | None], named, where)
        for phase, candidates in grid.items():
            kind = pick(CANDIDATES, phase, "phase", where)
            for name, changes in (candidates or {}).items():
                check_keys(kind, changes, f"{where}.{phase}.{name}")

    @property
    def recipes(self) -> list[str]:
        return list(self._recipe_sources[1])

    def selection(self, recipe: str, phase: TrainingPhase) -> tuple[str, ...]:
        """The recipes of which a recipe takes the best on validation; none if it trains itself."""
        return self._recipe_sources[2].get(recipe.partition("+")[0], {}).get(phase, ())

    @cache  # noqa: B019 - a registry lives as long as the program
    def recipe(self, name: str, backbone: str) -> Recipe:
        """A recipe for a backbone: its protocol, then the scale's `recipe`, then its own keys.

        In each of the three, what stands under `backbones.<backbone>` goes over the rest.

        `<recipe>+<classifier>` tests the recipe's network with an entry of classifiers.yaml.
        """
        name, _, classifier = name.partition("+")
        if classifier:
            return self._tested_with(self.recipe(name, backbone), classifier)
        where = f"{self.config.name}/recipes.yaml"
        protocols, recipes, _ = self._recipe_sources
        own = extend(recipes, name, "recipe", where, dict)
        if "protocol" not in own:
            raise UserError(f"{where}, recipes.{name}: the key 'protocol' is missing")
        preset = extend(protocols, own["protocol"], "protocol", f"{where}, recipes.{name}", dict)
        merged: dict[str, Any] = {}
        layers = []
        for place, layer in (
            (f"{where}, protocols.{own['protocol']}", preset),
            (f"{self.scale_file}, recipe", self.scale.recipe),
            (f"{where}, recipes.{name}", own),
        ):
            general = {key: value for key, value in layer.items() if key != "backbones"}
            special = (layer.get("backbones") or {}).get(backbone) or {}
            merged = merge(merge(merged, general), special)
            layers.append((place, merged))
        recipe = _validate_last(layers)
        for phase, partial in recipe.phases.items():
            whole = recipe.propagation.model_dump() | partial
            validate(Propagation, whole, f"{place}, phases.{phase}")
        return recipe

    def _tested_with(self, recipe: Recipe, classifier: str) -> Recipe:
        where = f"recipe <recipe>+{classifier}"
        choice = pick(self.classifiers, classifier, "entry of classifiers.yaml", where)
        testing = recipe.phases.get("testing", {}) | {"classifier": choice.classifier}
        phases = recipe.phases | {"testing": testing}
        return recipe.model_copy(update={"phases": phases, "grid": choice.grid})

    def check_recipe(self, name: str, where: str) -> None:
        """Raises `UserError` unless there is such a recipe, and such a classifier behind its +."""
        recipe, plus, classifier = name.partition("+")
        trained = {} if plus else self.compared
        pick({**self._recipe_sources[1], **trained}, recipe, "recipe", where)
        if plus:
            pick(self.classifiers, classifier, "entry of classifiers.yaml", where)

    @cached_property
    def compared(self) -> dict[str, ComparedMethod]:
        """The file compared.yaml: methods that are trained on episodes, at this scale."""
        where = f"{self.config.name}/compared.yaml"
        sources = validate(
            dict[str, dict[str, Any]], read_yaml(self.config / "compared.yaml"), where
        )
        found = {}
        for name, own in sources.items():
            check_keys(ComparedMethod, own, f"{where}, {name}", also=("extends",))
            whole = extend(sources, name, "recipe", where, dict)
            kind = (whole.get("method") or {}).get("name")
            shared = {"training": self.scale.compared.training}
            changes = merge(shared, self.scale.compared.methods.get(str(kind), {}))
            place = f"{where} or {self.scale_file}, compared, {name}"
            found[name] = validate(ComparedMethod, merge(whole, changes), place)
        for name in self.scale.compared.methods:
            pick(dict.fromkeys(METHODS), name, "method", f"{self.scale_file}, compared.methods")
        return found

    def compared_method(self, name: str) -> ComparedMethod:
        """An entry of compared.yaml."""
        return pick(self.compared, name, "recipe", f"{self.config.name}/compared.yaml")

    @cached_property
    def footprint(self) -> FootprintSettings:
        """The file footprint.yaml."""
        return read_footprint(self.config)

    @cached_property
    def tables(self) -> dict[str, Table]:
        """The scale's tables; without ImageNet-FS none of its own."""
        known = self._episode_tables if self.scale.imagenet_fs is None else self.every_table
        names = known if self.scale.tables is None else sorted(set(self.scale.tables))
        for name in names:
            pick(known, name, "table", f"{self.scale_file}, tables")
        return {name: self._part(name, known[name]) for name in names}

    def _part(self, name: str, table: Table) -> Table:
        """What the scale shows of a table."""
        part, where = self.scale.parts.get(name, TablePart()), f"{self.scale_file}, parts.{name}"
        blocks = {block.name: block for block in table.blocks}
        datasets = {column.dataset: None for column in table.columns}
        for block in part.blocks or ():
            pick(blocks, block, "block", f"{where}.blocks")
        for dataset in part.columns or ():
            pick(datasets, dataset, "data set of a column", f"{where}.columns")
        shown, columns = part.blocks or blocks, part.columns or datasets
        return table.model_copy(
            update={
                "blocks": tuple(block for block in table.blocks if block.name in shown),
                "columns": tuple(each for each in table.columns if each.dataset in columns),
            }
        )

    @property
    def _episode_tables(self) -> dict[str, Table]:
        """Those of recipes that are tested on episodes, which those of ImageNet-FS are not."""
        every = self.every_table.items()
        return {name: table for name, table in every if table.imagenet_fs is None}

    @cached_property
    def every_table(self) -> dict[str, Table]:
        """Read once: what is edited during a run counts for the next one."""
        files = sorted((self.config / "tables").glob("*.yaml"), key=lambda path: path.stem)
        return {path.stem: self._read_table(path) for path in files}

    def check_table(self, name: str, where: str) -> None:
        """Raises `UserError` unless there is such a table of recipes, at this scale or another."""
        pick(self._episode_tables, name, "table", where)

    def check_column(self, name: str, where: str) -> None:
        """Raises `UserError` unless a table has columns of a data set of the paper."""
        known = {group: None for table in self._episode_tables.values() for group in table.groups}
        pick(known, name, "column of the tables", where)

    def check_columns(self) -> None:
        """Raises `UserError` unless tables and scales mean the same columns."""
        for name in self.scale.columns:
            self.check_column(name, f"{self.scale_file}, columns")
        for name in self.scale.parts:
            pick(self.every_table, name, "table", f"{self.scale_file}, parts")
        known = dict.fromkeys(self.scale.columns)
        for name, table in self._episode_tables.items():
            for column in table.columns:
                if column.dataset not in known:
                    known |= self._columns_of_every_scale
                where = f"{self.config.name}/tables/{name}.yaml, {column.name}, dataset"
                pick(known, column.dataset, "column of the scales", where)

    def check_recipes(self) -> None:
        """Raises `UserError` unless all recipes resolve, for backbones that can be built."""
        for backbone in self.scale.backbones:
            network = self.backbone(backbone)
            check_sizes(network, f"{self.scale_file}, backbones.{backbone}")
            for recipe in self.recipes:
                crop = self.recipe(recipe, backbone).view.crop
                for column, dataset in self.scale.columns.items():
                    pixels = round(self.datasets[dataset].image_size * crop)
                    check_pixels(network, pixels, f"{self.scale_file}, columns.{column}")

    @cached_property
    def _columns_of_every_scale(self) -> dict[str, None]:
        columns = []
        for path in self._scale_paths:
            with contextlib.suppress(UserError):  # a mistake there is in nobody's way but its own
                columns.append(read_yaml(path).get("columns"))
        named = [each for each in columns if isinstance(each, dict)]
        return {name: None for each in named for name, dataset in each.items() if dataset}

    @property
    def printed(self) -> dict[str, Shown]:
        """Files of config/paper -> the rows and columns of the tables that show them."""
        shown: dict[str, Shown] = {}
        for table in self.every_table.values():
            for file in table.printed:
                rows = shown.setdefault(file, {})
                for block in table.blocks:
                    for row in block.rows:
                        place = (block.name, row.paper or row.name)
                        rows.setdefault(place, set()).update(c.name for c in table.columns)
        return shown

    def _read_table(self, path: Path) -> Table:
        check_name(path.stem, _shown(path))
        table: Table = validate(Table, read_yaml(path), _shown(path))
        blocks = tuple(self._with_classifiers(block, _shown(path)) for block in table.blocks)
        table = table.model_copy(update={"blocks": blocks})
        _check_unique([column.name for column in table.columns], "column", _shown(path))
        _check_unique([block.name for block in table.blocks], "block", _shown(path))
        for file, key in zip(table.printed, ("paper", "rerun.paper"), strict=False):
            if not (self.config / "paper" / f"{file}.csv").is_file():
                raise UserError(f"{_shown(path)}, {key}: {file}.csv is not in config/paper")
        for column in table.columns:
            pick(table.groups, column.dataset, "group", f"{_shown(path)}, {column.name}")
        for block in table.blocks:
            where = f"{_shown(path)}, {block.name}"
            ours = {row.name: row for row in block.rows if row.recipe is not None}
            _check_unique([row.name for row in block.rows], "row", where)
            if block.backbone is not None:
                pick(self.backbones, block.backbone, "backbone", where)
            for row in block.rows:
                for mark in row.marks:
                    pick(dict.fromkeys(table.marks), mark, "mark", f"{where}, {row.name}")
                if row.baseline is not None:
                    pick(ours, row.baseline, "row of ours", f"{where}, {row.name}, baseline")
                if row.baseline_recipe is not None:
                    self.check_recipe(row.baseline_recipe, f"{where}, {row.name}, baseline_recipe")
                if row.method is not None and table.imagenet_fs is None:
                    self.check_recipe(row.method, f"{where}, {row.name}, method")
                if row.recipe is not None:
                    self.check_recipe(row.recipe, f"{where}, {row.name}")
                    for column in table.columns:
                        self._check_protocol(row, column, f"{where}, {row.name}, {column.name}")
        return table

    def _with_classifiers(self, block: Block, where: str) -> Block:
        """With a row for each of its classifiers."""
        asked = block.classifiers
        if asked is None:
            return block
        rows = []
        place, shown = f"{where}, {block.name}, classifiers", self.scale.classifiers
        for name in self.classifiers if asked.names is None else asked.names:
            if shown is not None and name not in shown:
                continue
            choice = pick(self.classifiers, name, "entry of classifiers.yaml", place)
            other = f"{asked.baseline_recipe}+{name}" if asked.baseline_recipe else None
            row = {
                "name": name,
                "label": choice.label,
                "recipe": f"{asked.recipe}+{name}",
                "baseline": asked.baseline,
                "baseline_recipe": other,
            }
            rows.append(validate(Row, row, f"{place}, {name}"))
        return block.model_copy(update={"rows": (*block.rows, *rows)})

    def _check_protocol(self, row: Row, column: Column, where: str) -> None:
        asked = pick(self.protocols, protocol_of(row, column), "protocol", where)
        pick(self.protocols, f"val-5way-{asked.checkpoint_shot}shot", "protocol", where)

    def table(self, name: str) -> Table:
        """One of the tables."""
        return pick(self.tables, name, "table", f"{self.config.name}/tables")

    def shown_datasets(self) -> list[str]:
        """The data sets of this scale's columns; for the demo, all that can be drawn."""
        drawn = [name for name, dataset in self.datasets.items() if dataset.kind == "glyphs"]
        used = list(self.scale.columns.values())
        return sorted({*used, *drawn} if set(used) & set(drawn) else used)


def read_classifiers(config: Path) -> dict[str, ClassifierChoice]:
    """The file classifiers.yaml."""
    content = read_yaml(config / "classifiers.yaml")
    return validate(dict[str, ClassifierChoice], content, f"{config.name}/classifiers.yaml")


def scale_of(config: Mapping[str, Any]) -> str:
    """The scale that config/config.yaml, or --config on the command line, asks for."""
    known = ("allow_cpu", "data_root", "scale")
    for key in config:
        if key not in (*known, "seeds"):
            near = suggest(key, (*known, "seeds"))
            raise UserError(f"config/config.yaml or --config: unknown key {key!r}{near}")
    for key in known:
        if key not in config:
            raise UserError(f"config/config.yaml: the key {key!r} is missing")
    if str(config["allow_cpu"]).lower() not in ("true", "false"):
        raise UserError(
            "config/config.yaml or --config: allow_cpu is true or false, "
            f"not {config['allow_cpu']!r}"
        )
    return str(config["scale"])


def protocol_of(row: Row, column: Column) -> str:
    """The protocol of a cell of ours."""
    return column.protocol if row.unlabeled is None else f"{column.protocol}-u{row.unlabeled}"


def _with_candidates(
    recipes: Mapping[str, dict[str, Any]], where: str
) -> tuple[dict[str, Any], Selections]:
    """Every recipe and, behind one with `candidates`, a recipe for each of them: <recipe>-<name>.

    Those of fine-tuning start from the pretraining that the recipe has chosen.
    """
    expanded: dict[str, Any] = {}
    selections: Selections = {}
    for name, settings in recipes.items():
        grid = extend(recipes, name, "recipe", where, dict).get("candidates", {})
        expanded[name] = {key: own for key, own in settings.items() if key != "candidates"}
        found = {phase: tuple(f"{name}-{each}" for each in named) for phase, named in grid.items()}
        selections[name] = found
        for phase, named in grid.items():
            for candidate, changes in zip(found[phase], named.values(), strict=True):
                if candidate in recipes or candidate in expanded:
                    raise UserError(
                        f"{where}, recipes.{name}.candidates: a recipe {candidate!r} is there "
                        "already; rename the candidate"
                    )
                described = f"a candidate of {name} for {phase}"
                expanded[candidate] = {"extends": name, "description": described, phase: changes}
                if phase == "finetuning" and "pretraining" in found:
                    selections[candidate] = {"pretraining": found["pretraining"]}
    return expanded, selections


def read_datasets(config: Path) -> DataSources:
    """The file datasets.yaml of the folder `config`: data sets and the sources of their files.

    Raises:
        UserError: that names the file, the key and the remedy.
    """
    file = _shown(config / "datasets.yaml")
    registry = validate(DataSources, read_yaml(config / "datasets.yaml"), file)
    for name, dataset in registry.datasets.items():
        _check_sources(dataset, registry.sources, f"{file}, datasets.{name}")
    for name, source in registry.sources.items():
        by_hand = [file for file in source.files.values() if not file.urls]
        if by_hand and not source.by_hand:
            raise UserError(
                f"{file}, sources.{name}: {by_hand[0].path} has no urls; give the steps by_hand"
            )
    return registry


def _validate_last(layers: list[tuple[str, dict[str, Any]]]) -> Recipe:
    """The last one as a recipe; a mistake is told of the first that has it, at its place."""
    place, last = layers[-1]
    try:
        recipe: Recipe = validate(Recipe, last, "")
    except UserError as error:
        for earlier, settings in layers[:-1]:
            try:
                validate(Recipe, settings, "")
            except UserError as same:
                if str(same) == str(error):
                    place = earlier
                    break
        raise UserError(f"{place}{error}") from None
    return recipe


def _check_sources(dataset: Any, sources: Mapping[str, Source], where: str) -> None:
    if isinstance(dataset, OfficialData):
        for name in dataset.sources:
            pick(sources, name, "source", where)


def _seeds(given: Any) -> tuple[int, ...]:
    """A list of seeds; a number n stands for 0 to n - 1."""
    if not isinstance(given, list) and (type(given) is not int or given < 1):
        raise UserError(
            f"config/config.yaml or --config, seeds: {given!r} is no number of trainings (1 or "
            "more) and no list of seeds, such as '[0, 1, 2]'"
        )
    listed = list(range(given)) if type(given) is int else given
    seeds: tuple[int, ...] = validate(Seeds, listed, "config/config.yaml or --config, seeds")
    return seeds


def check_name(name: str, where: str) -> None:
    """Raises `UserError` unless a name can be part of a path."""
    if not re.fullmatch(NAME, name):
        raise UserError(
            f"{where}: the name {name!r} cannot be part of a path; use small letters, digits and "
            "single hyphens"
        )


def _check_unique(names: list[str], what: str, where: str) -> None:
    twice = [name for name, count in Counter(names).items() if count > 1]
    if twice:
        raise UserError(f"{where}: {what} {twice[0]!r} is there twice; rename one")


def _shown(path: Path) -> str:
    """A config file as the user knows it: config/..."""
    return "/".join(path.parts[-3:])
