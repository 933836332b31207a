"""The plan of one scale: which runs the tables need and what each stage of a run is told."""

from collections.abc import Mapping
from functools import cached_property
from pathlib import Path
from typing import Any

from epcore.errors import UserError
from epcore.files import canonical_json
from epcore.plan import paths
from epcore.plan.load import check_keys, extend, merge, pick, read_yaml, suggest, validate
from epcore.plan.models import (
    Backbone,
    BackboneInfo,
    DataSet,
    Protocol,
    Recipe,
    Scale,
    Settings,
    Table,
)
from epcore.plan.stages import (
    STAGE_VERSIONS,
    AggregateStage,
    DataStage,
    EmbedStage,
    EpisodesStage,
    EvaluateStage,
    FinetuneStage,
    LatexBlock,
    LatexColumn,
    LatexRow,
    LatexStage,
    OurCell,
    PretrainStage,
    PrintedRow,
)


class Plan:
    """The config folder seen at one scale.

    Methods named after a stage return what that stage is told, as canonical JSON. All raise
    `UserError` that names the file, the key and the remedy.

    Args:
        config: the folder `config/`.
        scale: a file of `config/scales/` or `config/examples/`, without its ending.
    """

    def __init__(self, config: Path, scale: str) -> None:
        self.config, self.scale_name = config, scale
        self.scale = self._load_scale()
        self.datasets = self._registry("datasets.yaml", DataSet) | self.scale.datasets
        self.backbones = self._registry("backbones.yaml", BackboneInfo)
        self.protocols = self._registry("protocols.yaml", Protocol)
        self._check_names()

    @staticmethod
    def scale_of(config: Mapping[str, Any]) -> str:
        """The scale that config/config.yaml, or --config on the command line, asks for."""
        known = ("allow_cpu", "scale")
        for key in config:
            if key not in known:
                raise UserError(
                    f"config/config.yaml or --config: unknown key {key!r}{suggest(key, known)}"
                )
        for key in known:
            if key not in config:
                raise UserError(f"config/config.yaml: the key {key!r} is missing")
        return str(config["scale"])

    def check(self) -> None:
        """Resolves every recipe and table, so that a mistake is told before anything runs."""
        for table in self.tables:
            self.latex(table)
        for recipe in self.recipes:
            for backbone in self.scale.backbones:
                self.recipe(recipe, backbone)

    # -- registries -------------------------------------------------------------------------------

    def _load_scale(self) -> Scale:
        folders = [self.config / "scales", self.config / "examples"]
        files = {path.stem: path for folder in folders for path in sorted(folder.glob("*.yaml"))}
        path = pick(files, self.scale_name, "scale", f"{self.config.name}/config.yaml")
        sources = {name: read_yaml(file) for name, file in files.items()}
        content = extend(sources, self.scale_name, "scale", _shown(path))
        return validate(Scale, content, _shown(path))

    def _registry(self, name: str, kind: Any) -> dict[str, Any]:
        content = read_yaml(self.config / name)
        return validate(dict[str, kind], content, f"{self.config.name}/{name}")

    def _check_names(self) -> None:
        where = f"scale {self.scale_name}"
        for column, dataset in self.scale.columns.items():
            pick(self.datasets, dataset, "data set", f"{where}, columns.{column}")
        for name in self.scale.backbones:
            pick(self.backbones, name, "backbone", f"{where}, backbones")

    @cached_property
    def _recipe_sources(self) -> tuple[dict[str, Any], dict[str, Any]]:
        where = f"{self.config.name}/recipes.yaml"
        content = read_yaml(self.config / "recipes.yaml")
        for key in content:
            if key not in ("protocols", "recipes"):
                raise UserError(f"{where}: unknown key {key!r}{suggest(key, content)}")
        protocols, recipes = content.get("protocols") or {}, content.get("recipes") or {}
        for name, settings in protocols.items():
            _check_recipe(settings, f"{where}, protocols.{name}")
        for name, settings in recipes.items():
            _check_recipe(settings, f"{where}, recipes.{name}")
        _check_recipe(self.scale.recipe, f"scale {self.scale_name}, recipe")
        return protocols, recipes

    @property
    def recipes(self) -> list[str]:
        return list(self._recipe_sources[1])

    def recipe(self, name: str, backbone: str) -> Recipe:
        """A recipe for a backbone: its protocol, then the scale's `recipe`, then its own keys.

        What any of these has under `backbones.<backbone>` comes last.
        """
        where = f"{self.config.name}/recipes.yaml"
        protocols, recipes = self._recipe_sources
        own = extend(recipes, name, "recipe", where)
        if "protocol" not in own:
            raise UserError(f"{where}, recipes.{name}: the key 'protocol' is missing")
        preset = pick(protocols, own["protocol"], "protocol", f"{where}, recipes.{name}")
        merged = merge(merge(preset, self.scale.recipe), own)
        special = merged.pop("backbones", {}).get(backbone, {})
        return validate(Recipe, merge(merged, special), f"recipe {name} at scale {self.scale_name}")

    @property
    def tables(self) -> list[str]:
        return sorted(path.stem for path in (self.config / "tables").glob("*.yaml"))

    def table(self, name: str) -> Table:
        path = self.config / "tables" / f"{name}.yaml"
        table: Table = validate(Table, read_yaml(path), _shown(path))
        for column in table.columns:
            pick(self.protocols, column.protocol, "protocol", f"{_shown(path)}, {column.name}")
            pick(table.groups, column.dataset, "group", f"{_shown(path)}, {column.name}")
        for block in table.blocks:
            pick(self.backbones, block.backbone, "backbone", f"{_shown(path)}, {block.name}")
            for row in block.rows:
                if row.recipe is not None:
                    pick(self._recipe_sources[1], row.recipe, "recipe", _shown(path))
        return table

    def shown_datasets(self) -> list[str]:
        """The data sets of this scale's columns; for the demo, all that can be drawn."""
        drawn = [name for name, dataset in self.datasets.items() if dataset.kind == "glyphs"]
        used = list(self.scale.columns.values())
        return sorted({*used, *drawn} if set(used) & set(drawn) else used)

    # -- stages -----------------------------------------------------------------------------------

    def data(self, dataset: str) -> str:
        return _told(
            DataStage(
                stage_version=STAGE_VERSIONS["data"],
                dataset=pick(self.datasets, dataset, "data set", "config/datasets.yaml"),
            )
        )

    def episodes(self, protocol: str) -> str:
        asked = pick(self.protocols, protocol, "protocol", "config/protocols.yaml")
        if asked.split == "base":
            raise UserError(f"protocol {protocol}: episodes are of split val or novel")
        return _told(
            EpisodesStage(
                stage_version=STAGE_VERSIONS["episodes"],
                split=asked.split,
                way=asked.way,
                shot=asked.shot,
                queries=asked.queries,
                episodes=self.scale.episodes[asked.split],
                seed=self.scale.seed,
            )
        )

    def backbone(self, name: str) -> Backbone:
        """The backbone at this scale's width and depth."""
        size = pick(self.scale.backbones, name, "backbone", f"scale {self.scale_name}, backbones")
        architecture = self.backbones[name].architecture
        return Backbone(architecture=architecture, width=size.width, depth=size.depth)

    def _network(self, stage: str, backbone: str, recipe: Recipe) -> dict[str, Any]:
        return {
            "stage_version": STAGE_VERSIONS[stage],
            "backbone": self.backbone(backbone),
            "view": recipe.view,
            "precision": self.scale.precision,
        }

    def _training(self, stage: str, backbone: str, recipe: Recipe, seed: int) -> dict[str, Any]:
        return self._network(stage, backbone, recipe) | {
            "seed": seed,
            "requires_gpu": self.scale.requires_gpu,
            "propagation": recipe.propagation,
        }

    def pretrain(self, backbone: str, recipe: str, seed: int) -> str:
        resolved = self.recipe(recipe, backbone)
        return _told(
            PretrainStage(
                **self._training("pretrain", backbone, resolved, seed),
                augmentation=resolved.augmentation.pretraining,
                pretraining=resolved.pretraining,
            )
        )

    def finetune(self, backbone: str, recipe: str, seed: int, shot: int) -> str:
        resolved = self.recipe(recipe, backbone)
        return _told(
            FinetuneStage(
                **self._training("finetune", backbone, resolved, seed),
                augmentation=resolved.augmentation.finetuning,
                finetuning=resolved.finetuning,
                shot=shot,
            )
        )

    def embed(self, backbone: str, recipe: str) -> str:
        return _told(EmbedStage(**self._network("embed", backbone, self.recipe(recipe, backbone))))

    def evaluate(self, backbone: str, recipe: str) -> str:
        return _told(
            EvaluateStage(
                stage_version=STAGE_VERSIONS["evaluate"],
                propagation=self.recipe(recipe, backbone).propagation,
            )
        )

    def test_protocols(self, shot: int) -> list[str]:
        """The protocols whose episodes are tested with the checkpoint finetune-<shot>shot."""
        return [n for n, p in self.protocols.items() if p.split == "novel" and p.shot == shot]

    # -- tables -----------------------------------------------------------------------------------

    def cells(self, name: str) -> list[OurCell]:
        """The cells of ours that this scale covers: its columns and its backbones."""
        table = self.table(name)
        cells = []
        for block in table.blocks:
            for row in block.rows:
                for column in table.columns:
                    dataset = self.scale.columns.get(column.dataset)
                    if (
                        row.recipe is None
                        or not dataset
                        or block.backbone not in self.scale.backbones
                    ):
                        continue
                    place = {
                        "scale": self.scale_name,
                        "dataset": dataset,
                        "backbone": block.backbone,
                        "recipe": row.recipe,
                        "seed": self.scale.seed,
                        "protocol": column.protocol,
                        "shot": self.protocols[column.protocol].shot,
                    }
                    cells.append(
                        OurCell(
                            block=block.name,
                            row=row.name,
                            column=column.name,
                            scores=paths.SCORES.format(**place),
                            checkpoint_meta=paths.meta(paths.FINETUNE.format(**place)),
                        )
                    )
        return cells

    def aggregate(self, name: str) -> str:
        table = self.table(name)
        return _told(
            AggregateStage(
                stage_version=STAGE_VERSIONS["aggregate"],
                table=name,
                rows=tuple(
                    PrintedRow(
                        block=block.name,
                        row=row.name,
                        source=row.source or f"this run, recipe {row.recipe}",
                        parameters=row.parameters,
                    )
                    for block in table.blocks
                    for row in block.rows
                ),
                columns=tuple(column.name for column in table.columns),
                cells=tuple(self.cells(name)),
            )
        )

    def latex(self, name: str) -> str:
        table = self.table(name)
        return _told(
            LatexStage(
                stage_version=STAGE_VERSIONS["latex"],
                label=table.label,
                caption=self._caption(table),
                columns=tuple(
                    LatexColumn(name=c.name, group=table.groups[c.dataset], heading=c.heading)
                    for c in table.columns
                ),
                blocks=tuple(
                    LatexBlock(
                        block=block.name,
                        heading=self._heading(block.backbone),
                        rows=tuple(
                            LatexRow(
                                row=row.name,
                                label=row.label or tex_escape(row.name),
                                source=tex_escape(row.source),
                            )
                            for row in block.rows
                        ),
                    )
                    for block in table.blocks
                ),
            )
        )

    def _heading(self, backbone: str) -> str:
        """The backbone's name, with its size where this scale makes it smaller."""
        label: str = self.backbones[backbone].label
        size = self.scale.backbones.get(backbone)
        if size is not None and size.width != 1:
            label += rf" $\times${size.width}"
        if size is not None and size.depth != 1:
            label += rf", depth $\times${size.depth}"
        return label

    def _caption(self, table: Table) -> str:
        shown = dict.fromkeys(column.dataset for column in table.columns)
        stand_in = [
            f"{table.groups[column]}: {tex_escape(self.datasets[dataset].title)}"
            for column in shown
            if (dataset := self.scale.columns.get(column))
        ]
        parts = [
            table.title,
            tex_escape(self.scale.note),
            f"Data in the columns: {'; '.join(stand_in)}.",
            rf"\emph{{This run}}: mean accuracy in \% over {self.scale.episodes['novel']} test "
            r"episodes with its 95\,\% interval.",
            r"\emph{Paper}: as printed.",
            table.notes,
        ]
        if not self.scale.comparable:
            parts.append(
                r"\textbf{This run uses stand-in data: its numbers are not comparable with the "
                r"paper's}"
            )
        sentences = [part.rstrip(".") + "." for part in parts if part]
        return " ".join(sentences)


def tex_escape(text: str) -> str:
    """Plain text as LaTeX."""
    for character in "&%$#_{}":
        text = text.replace(character, "\\" + character)
    return text


def _told(settings: Settings) -> str:
    return canonical_json(settings.model_dump(mode="json"))


def _shown(path: Path) -> str:
    """A config file as the user knows it: config/..."""
    return "/".join(path.parts[-3:])


def _check_recipe(settings: Any, where: str) -> None:
    """Misspelt keys of a partial recipe, at any depth."""
    if not isinstance(settings, dict):
        raise UserError(f"{where}: expected a mapping of settings")
    keys = {k: v for k, v in settings.items() if k not in ("extends", "backbones")}
    check_keys(Recipe, keys, where)
    for backbone, special in (settings.get("backbones") or {}).items():
        check_keys(Recipe, special or {}, f"{where}, backbones.{backbone}")
