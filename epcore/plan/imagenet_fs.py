"""ImageNet-FS at one scale: what its stages are told, and which methods share a generator."""

from functools import cached_property
from pathlib import Path
from typing import Any

from epcore.errors import UserError
from epcore.markup import literal
from epcore.plan import paths
from epcore.plan.imagenet_fs_models import (
    ImageNetFs,
    ImageNetFsRun,
    ImageNetFsScale,
    ImageNetFsTable,
    Measure,
    Method,
)
from epcore.plan.load import extend, merge, pick, read_yaml, validate
from epcore.plan.models import Backbone, ScaledBackbone
from epcore.plan.printed import Shown
from epcore.plan.registry import Registry, check_name
from epcore.plan.stages import (
    AggregateStage,
    ClassifierStage,
    ExemplarsStage,
    GeneratorStage,
    ImageFeaturesStage,
    LatexBlock,
    LatexColumn,
    LatexRow,
    LatexStage,
    MeasuredCell,
    TableRow,
    Training,
    TrialsStage,
    told,
)
from epcore.plan.tables import caption_of, this_run

# Measure -> how columns of config/paper/imfs.csv begin, and what stands above them.
COLUMNS: dict[Measure, tuple[str, str]] = {
    "novel": ("nov", "Novel classes"),
    "all": ("all", "All classes"),
    "all-prior": ("prior", "All classes, with prior"),
}
PRINTED = "-"  # the block of the paper's rows


class ImageNetFsPlan:
    """The part of a plan that is ImageNet-FS; methods named after a stage return what it is told.

    Methods that tell the stage `imagenet-fs-generator` the same share its generator, which carries
    the name of the first of them.
    """

    def __init__(self, registry: Registry, section: dict[str, Any], where: str) -> None:
        self._registry = registry
        self.scale: ImageNetFsScale = validate(ImageNetFsScale, section, where)
        file = registry.config / "imagenet-fs.yaml"
        self._where = f"{registry.config.name}/{file.name} or {where}.settings"
        self._whole = read_yaml(file)
        content = merge(self._whole, self.scale.settings)
        self.settings: ImageNetFs = validate(ImageNetFs, content, self._where)
        for run in self.scale.runs:
            pick(registry.datasets, run.dataset, "data set", f"{where}, runs")
            pick(registry.datasets, queries_of(run.dataset), "data set", f"{where}, runs")
            pick(self.settings.networks, run.network, "network", f"{where}, runs")

    def check(self) -> None:
        """Resolves every method and table, so that a mistake is told before anything runs."""
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

    @property
    def main_tables(self) -> list[str]:
        """The tables of the target `all`; those of one run only are asked for by name."""
        return [name for name, table in self.tables.items() if table.runs == "all"]

    @property
    def networks(self) -> list[str]:
        return list(dict.fromkeys(run.network for run in self.scale.runs))

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

    @property
    def seeds(self) -> tuple[int, ...]:
        """Of trainings."""
        return self._registry.seeds

    def _place(self, run: ImageNetFsRun, seed: int) -> dict[str, Any]:
        place = {"scale": self._registry.scale_name, "seed": seed}
        return place | {"dataset": run.dataset, "network": run.network}

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

    def generator_method(self, method: str) -> str:
        """The method that names the generator of a method."""
        wanted = self.generator(method)
        return next(name for name in self.methods if self.generator(name) == wanted)

    def _tests(self) -> list[tuple[ImageNetFsRun, str, int]]:
        """Run, method and seed of the tests of the target `all`; tables may share one."""
        return [
            (run, row.method, seed)
            for table in map(self.table, self.main_tables)
            for run in self.runs(table)
            for row in table.rows
            for seed in self.seeds
        ]

    @property
    def trained_files(self) -> list[str]:
        """The classifiers of the target `all`, then its generators."""
        classifiers = {
            paths.CLASSIFIER.format(**self._place(run, seed)) for run, _, seed in self._tests()
        }
        generators = {
            paths.GENERATOR.format(**self._place(run, seed), method=self.generator_method(method))
            for run, method, seed in self._tests()
        }
        return [*sorted(classifiers), *sorted(generators)]

    @property
    def tested_files(self) -> list[str]:
        """Of every test of the target `all`, the scores that its meta stands beside."""
        first, *_ = self.trial_files()
        return sorted(
            {first.format(**self._place(run, s), method=m) for run, m, s in self._tests()}
        )

    @property
    def curves(self) -> dict[str, tuple[Training, ...]]:
        """Figure -> the trainings that it shows: a run's classifier, then a row a generator."""
        rows: dict[str, dict[Training, None]] = {}
        for run, method, seed in self._tests():
            place, owner = self._place(run, seed), self.generator_method(method)
            row = rows.setdefault(f"curves-{run.dataset}-{run.network}", {})
            names = dict.fromkeys(("recipe", "phase", "trained_as"), "classifier")
            checkpoint = paths.CLASSIFIER.format(**place)
            row[Training(seed=seed, **names, checkpoint=checkpoint)] = None
            exemplars = self.methods[owner].training.exemplars
            for shots in (exemplars,) if exemplars else self.settings.shots:
                training = Training(
                    seed=seed,
                    recipe=owner,
                    phase=f"generator, K = {shots}",
                    trained_as=owner,
                    checkpoint=paths.GENERATOR.format(**place, method=owner),
                    model=f"-{shots}shot",
                )
                row[training] = None
        return {name: tuple(row) for name, row in rows.items()}

    # -- stages -----------------------------------------------------------------------------------

    def exemplars(self) -> str:
        trials = self.settings.trials
        return told(
            ExemplarsStage(
                shots=self.settings.shots,
                trials={"val": trials.val, "novel": trials.novel},
                seed=self._registry.scale.episodes.seed,
            )
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

    def classifier(self, network: str, seed: int) -> str:
        return told(
            ClassifierStage(
                **self._network(network),
                training=self.settings.classifier,
                seed=seed,
            )
        )

    def features(self, network: str) -> str:
        return told(ImageFeaturesStage(**self._network(network)))

    def generator(self, name: str, seed: int = 0) -> str:
        method = pick(self.methods, name, "method", self._where)
        propagation = method.propagation
        if propagation is not None:
            changes = {"step": "after"}
            propagation = propagation.model_copy(update=changes) if propagation.training else None
        exemplars = method.training.exemplars
        return told(
            GeneratorStage(
                generator=method.generator,
                training=method.training,
                propagation=propagation,
                shots=(exemplars,) if exemplars else self.settings.shots,
                seed=seed,
            )
        )

    def evaluate(self, name: str) -> str:
        method = pick(self.methods, name, "method", self._where)
        shots = self.settings.shots
        return told(
            TrialsStage(
                generator=method.generator,
                propagation=method.propagation,
                shots=shots,
                step_sizes=method.step_sizes or (1.0,) * len(shots),
                prior=self.settings.prior,
            )
        )

    # -- tables -----------------------------------------------------------------------------------

    def table(self, name: str) -> ImageNetFsTable:
        return pick(self.tables, name, "table", self._where)

    def runs(self, table: ImageNetFsTable) -> tuple[ImageNetFsRun, ...]:
        """The data sets and networks of a table."""
        return self.scale.runs[:1] if table.runs == "first" else self.scale.runs

    @property
    def printed(self) -> dict[str, Shown]:
        """Files of config/paper -> what shows them, here or at a scale that leaves nothing out."""
        shown: dict[str, Shown] = {}
        for settings in (self.settings, validate(ImageNetFs, self._whole, self._where)):
            for table in settings.tables.values():
                if table.paper is not None:
                    rows = shown.setdefault(table.paper, {})
                    for row in table.printed:
                        columns = {
                            f"{COLUMNS[measure][0]}{shots}"
                            for measure in table.measures
                            for shots in settings.shots
                        }
                        rows.setdefault((PRINTED, row.name), set()).update(columns)
        return shown

    def _columns(self, table: ImageNetFsTable) -> list[tuple[str, Measure, int]]:
        """Name, measure and K of every column."""
        shots = self.settings.shots
        return [(f"{COLUMNS[m][0]}{k}", m, k) for m in table.measures for k in shots]

    def cells(self, name: str) -> list[MeasuredCell]:
        """The cells of ours of a table."""
        table = self.table(name)
        return [
            MeasuredCell(
                block=_block(run),
                row=row.method,
                column=column,
                seed=seed,
                scores=self._scores(run, seed, row.method, measure, shots),
                checkpoint_meta=paths.meta(
                    paths.GENERATOR.format(
                        **self._place(run, seed), method=self.generator_method(row.method)
                    )
                ),
                baseline=(
                    self._scores(run, seed, row.baseline, measure, shots) if row.baseline else None
                ),
            )
            for run in self.runs(table)
            for row in table.rows
            for column, measure, shots in self._columns(table)
            for seed in self.seeds
        ]

    def _scores(self, run: ImageNetFsRun, seed: int, method: str, measure: str, shots: int) -> str:
        place = self._place(run, seed)
        return paths.TRIALS.format(**place, method=method, measure=measure, shots=shots)

    def paper_numbers(self, name: str, config: Path) -> list[Path]:
        """The file of what the paper prints, if it does."""
        paper = self.table(name).paper
        return [config / "paper" / f"{paper}.csv"] if paper else []

    def aggregate(self, name: str) -> str:
        table = self.table(name)
        printed = [
            TableRow(block=PRINTED, row=row.name, paper=row.name, source=row.source)
            for row in table.printed
        ]
        ours = [
            TableRow(
                block=_block(run), row=row.method, paper=row.method,
                source=f"this run, method {row.method}", baseline=row.baseline or "",
            )
            for run in self.runs(table)
            for row in table.rows
        ]  # fmt: skip
        return told(
            AggregateStage(
                table=name,
                rows=(*printed, *ours),
                columns=tuple(column for column, _, _ in self._columns(table)),
                cells=tuple(self.cells(name)),
                interval="normal",
            )
        )

    def latex(self, name: str) -> str:
        table = self.table(name)
        printed = LatexBlock(
            block=PRINTED,
            heading="As printed",
            rows=tuple(
                LatexRow(
                    row=row.name,
                    label=row.label or literal(row.name),
                    source=literal(row.source),
                )
                for row in table.printed
            ),
        )
        ours = [
            LatexBlock(
                block=_block(run),
                heading=self._heading(run),
                rows=tuple(LatexRow(row=row.method, label=row.label) for row in table.rows),
            )
            for run in self.runs(table)
        ]
        return told(
            LatexStage(
                label=table.label,
                caption=self._caption(table),
                first="",
                marks=(),
                printed=False,
                stacked=True,
                columns=tuple(
                    LatexColumn(name=column, group=COLUMNS[measure][1], heading=f"$K={shots}$")
                    for column, measure, shots in self._columns(table)
                ),
                blocks=(*([printed] if table.printed else []), *ours),
            )
        )

    def sized(self, network: str) -> str:
        """A network's name, with its size where this scale makes it smaller."""
        label = self.settings.networks[network].label
        return label + ScaledBackbone(width=self.scale.width).shown

    def _heading(self, run: ImageNetFsRun) -> str:
        network = literal(self.sized(run.network))
        title = literal(self._registry.datasets[run.dataset].title)
        return f"*This run*: {title}, {network}"

    def _caption(self, table: ImageNetFsTable) -> str:
        return caption_of(
            self._registry.scale,
            table.title,
            this_run(
                f"mean top-5 accuracy in % over {self.settings.trials.novel} draws of $K$ "
                "exemplars of each novel class",
                "$±1.96$ standard errors",
                self.seeds,
            ),
            table.notes,
        )


def queries_of(dataset: str) -> str:
    """The data set of a data set's queries."""
    return f"{dataset}-queries"


def _block(run: ImageNetFsRun) -> str:
    return f"{run.dataset}, {run.network}"
