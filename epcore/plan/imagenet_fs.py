"""ImageNet-FS at one scale: what its stages are told, and which methods share a generator."""

from collections.abc import Mapping
from dataclasses import replace
from functools import cache, cached_property
from pathlib import Path
from typing import Any

from epcore.errors import UserError
from epcore.plan import paths
from epcore.plan.imagenet_fs_models import (
    ImageNetFsRun,
    ImageNetFsScale,
    ImageNetFsSettings,
    ImageNetFsTable,
    Measure,
    Method,
)
from epcore.plan.load import extend, merge, pick, read_yaml, validate
from epcore.plan.network import check_sizes
from epcore.plan.recipe_models import Backbone
from epcore.plan.registry import Registry, check_name
from epcore.plan.run import MethodRun
from epcore.plan.scale_models import ScaledBackbone
from epcore.plan.stages import (
    ClassifierStage,
    CurvesStage,
    ExemplarsStage,
    GeneratorStage,
    ImageFeaturesStage,
    Training,
    TrialsStage,
)

FILE = "imagenet-fs.yaml"
# Measure -> how columns of config/paper/imfs.csv begin, and what stands above them.
COLUMNS: dict[Measure, tuple[str, str]] = {
    "novel": ("nov", "Novel classes"),
    "all": ("all", "All classes"),
    "all-prior": ("prior", "All classes, with prior"),
}


def read_imagenet_fs(
    config: Path, changes: Mapping[str, Any] | None = None, where: str = FILE
) -> ImageNetFsSettings:
    """The file imagenet-fs.yaml, with a scale's changes, or as one has it that changes nothing.

    Raises:
        UserError: if it is not as it must be; it begins with `where`.
    """
    content = merge(read_yaml(config / FILE), changes or {})
    settings: ImageNetFsSettings = validate(ImageNetFsSettings, content, where)
    return settings


class ImageNetFs:
    """ImageNet-FS at a scale that has it; methods named after a stage return what it is told.

    Methods that tell the stage `imagenet-fs-generator` the same share its generator, which carries
    the name of the first of them.
    """

    def __init__(self, registry: Registry) -> None:
        self._registry = registry
        self._scale_file = f"{registry.scale_file}, imagenet_fs"
        self._where = f"{registry.config.name}/{FILE} or {self._scale_file}.settings"
        section = registry.scale.imagenet_fs
        self.scale: ImageNetFsScale = validate(ImageNetFsScale, section, self._scale_file)

    @cached_property
    def settings(self) -> ImageNetFsSettings:
        """The file imagenet-fs.yaml, with the changes of the scale."""
        return read_imagenet_fs(self._registry.config, self.scale.settings, self._where)

    def check(self) -> None:
        """Resolves every method and table, so that a mistake is told before anything runs."""
        for run in self.scale.runs:
            where, datasets = f"{self._scale_file}, runs", self._registry.datasets
            pick(datasets, run.dataset, "data set", where)
            pick(datasets, queries_of(run.dataset), "data set", where)
            pick(self.settings.networks, run.network, "network", where)
        for network in self.networks:
            check_sizes(self.backbone(network), self._scale_file)
        for key in ("networks", "methods", "tables"):
            for name in getattr(self.settings, key):
                check_name(name, f"{self._where}, {key}")
        for method in self.settings.methods:
            self.evaluate(method)
        for name, table in self.tables.items():
            where = f"{self._where}, tables.{name}"
            ours = {row.method: row for row in table.rows}
            for row in table.rows:
                pick(self.settings.methods, row.method, "method", where)
                if row.baseline is not None:
                    pick(ours, row.baseline, "row of ours", f"{where}, {row.method}, baseline")

    # -- names ------------------------------------------------------------------------------------

    @property
    def tables(self) -> dict[str, ImageNetFsTable]:
        return self.settings.tables

    def table(self, name: str) -> ImageNetFsTable:
        return pick(self.tables, name, "table", self._where)

    @property
    def main_tables(self) -> list[str]:
        """The tables of the target `all`; those of one run only are asked for by name."""
        return [name for name, table in self.tables.items() if table.runs == "all"]

    def pairs(self, table: ImageNetFsTable) -> tuple[ImageNetFsRun, ...]:
        """The data sets and networks of a table."""
        return self.scale.runs[:1] if table.runs == "first" else self.scale.runs

    @cached_property
    def _runs(self) -> list[MethodRun]:
        """Those of the target `all`; tables may share one."""
        return [
            MethodRun(pair.dataset, pair.network, seed, row.method)
            for table in map(self.table, self.main_tables)
            for pair in self.pairs(table)
            for row in table.rows
            for seed in self._registry.seeds
        ]

    @property
    def networks(self) -> list[str]:
        return list(dict.fromkeys(run.network for run in self.scale.runs))

    def sized(self, network: str) -> str:
        """A network's name, with its size where this scale makes it smaller."""
        label = self.settings.networks[network].label
        return label + ScaledBackbone(width=self.scale.width).shown

    @cached_property
    def methods(self) -> dict[str, Method]:
        """Every method, with what it extends merged."""
        sources = self.settings.methods
        where = f"{self._where}, methods"
        methods: dict[str, Method] = {}
        for name in sources:
            content = extend(sources, name, "method", where, dict)
            methods[name] = validate(Method, content, f"{where}.{name}")
            exemplars = methods[name].training.exemplars
            if exemplars is not None and exemplars not in self.settings.shots:
                raise UserError(
                    f"{where}.{name}: training.exemplars {exemplars} is none of the shots "
                    f"{list(self.settings.shots)}, for which exemplars are drawn"
                )
            sizes = methods[name].step_sizes
            if sizes is not None and len(sizes) != len(self.settings.shots):
                raise UserError(
                    f"{where}.{name}: step_sizes has {len(sizes)} numbers, shots "
                    f"{len(self.settings.shots)}; give one for each K"
                )
        return methods

    @cache  # noqa: B019 - a plan lives as long as the program
    def generator_method(self, method: str) -> str:
        """The method that names the generator of a method."""
        wanted = self.generator(method)
        return next(name for name in self.methods if self.generator(name) == wanted)

    # -- files ------------------------------------------------------------------------------------

    def exemplar_files(self, split: str) -> list[str]:
        """Patterns of the exemplars of a split, one for each K."""
        return [
            paths.EXEMPLARS.replace("{split}", split).replace("{shots}", str(shots))
            for shots in self.settings.shots
        ]

    def validation_exemplars(self, method: str) -> list[str]:
        """Patterns of the exemplars that validate the generators of a method."""
        exemplars = self.methods[method].training.exemplars
        files = dict(zip(self.settings.shots, self.exemplar_files("val"), strict=True))
        return [files[exemplars]] if exemplars else list(files.values())

    def trial_files(self) -> list[str]:
        """Patterns of a method's scores, for each measure and K."""
        return [
            paths.TRIALS.replace("{measure}", measure).replace("{shots}", str(shots))
            for measure in COLUMNS
            for shots in self.settings.shots
        ]

    def path(self, pattern: str, run: MethodRun, **more: Any) -> str:
        """A file of a run, by its pattern in `epcore.plan.paths`."""
        return pattern.format(scale=self._registry.scale_name, **vars(run), **more)

    def trained(self, run: MethodRun) -> str:
        """The file of the generators that a run tests; methods may share it."""
        owner = self.generator_method(run.method)
        return self.path(paths.GENERATOR, replace(run, method=owner))

    @property
    def trained_files(self) -> list[str]:
        """The classifiers of the target `all`, then its generators."""
        classifiers = {self.path(paths.CLASSIFIER, run) for run in self._runs}
        return [*sorted(classifiers), *sorted({self.trained(run) for run in self._runs})]

    @property
    def tested_files(self) -> list[str]:
        """Of every test of the target `all`, the scores that its meta stands beside."""
        first, *_ = self.trial_files()
        return sorted({self.path(first, run) for run in self._runs})

    @cached_property
    def curves(self) -> dict[str, CurvesStage]:
        """Figure -> what its stage is told: a run's classifier, then a row a generator."""
        rows: dict[tuple[str, str], dict[Training, None]] = {}
        for run in self._runs:
            row = rows.setdefault((run.dataset, run.network), {})
            row |= dict.fromkeys([self._classifier_training(run), *self._generator_trainings(run)])
        registry = self._registry
        return {
            f"curves-{dataset}-{network}": CurvesStage(
                trainings=tuple(row),
                note=f"Scale {registry.scale_name}: {registry.datasets[dataset].caption}, "
                f"{self.sized(network)}",
            )
            for (dataset, network), row in rows.items()
        }

    def _classifier_training(self, run: MethodRun) -> Training:
        names = dict.fromkeys(("recipe", "phase", "trained_as"), "classifier")
        return Training(seed=run.seed, **names, checkpoint=self.path(paths.CLASSIFIER, run))

    def _generator_trainings(self, run: MethodRun) -> list[Training]:
        """One for each K, in one checkpoint."""
        owner = self.generator_method(run.method)
        return [
            Training(
                seed=run.seed,
                recipe=owner,
                phase=f"generator, K = {shots}",
                trained_as=owner,
                checkpoint=self.trained(run),
                model=f"-{shots}shot",
            )
            for shots in self.generator(owner).shots
        ]

    # -- stages -----------------------------------------------------------------------------------

    def exemplars(self) -> ExemplarsStage:
        trials = self.settings.trials
        return ExemplarsStage(
            shots=self.settings.shots,
            trials={"val": trials.val, "novel": trials.novel},
            seed=self._registry.scale.episodes.seed,
        )

    def backbone(self, network: str) -> Backbone:
        """The feature extractor at this scale's width."""
        chosen = pick(self.settings.networks, network, "network", self._where)
        return Backbone(architecture=chosen.architecture, width=self.scale.width)

    def _network(self, network: str) -> dict[str, Any]:
        return {
            "backbone": self.backbone(network),
            "view": self.settings.view,
            "precision": self._registry.scale.precision,
        }

    def classifier(self, network: str, seed: int) -> ClassifierStage:
        return ClassifierStage(
            **self._network(network),
            training=self.settings.classifier,
            seed=seed,
        )

    def features(self, network: str) -> ImageFeaturesStage:
        return ImageFeaturesStage(**self._network(network))

    def generator(self, name: str, seed: int = 0) -> GeneratorStage:
        method = pick(self.methods, name, "method", self._where)
        propagation = method.propagation
        if propagation is not None:
            changes = {"step": "after"}
            propagation = propagation.model_copy(update=changes) if propagation.training else None
        exemplars = method.training.exemplars
        return GeneratorStage(
            generator=method.generator,
            training=method.training,
            propagation=propagation,
            shots=(exemplars,) if exemplars else self.settings.shots,
            seed=seed,
        )

    def evaluate(self, name: str) -> TrialsStage:
        method = pick(self.methods, name, "method", self._where)
        shots = self.settings.shots
        return TrialsStage(
            generator=method.generator,
            propagation=method.propagation,
            shots=shots,
            step_sizes=method.step_sizes or (1.0,) * len(shots),
            prior=self.settings.prior,
        )


def queries_of(dataset: str) -> str:
    """The data set of a data set's queries."""
    return f"{dataset}-queries"
