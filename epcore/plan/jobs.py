"""The jobs that a target needs, known without Snakemake: for the forecast and the CO2 report.

A test compares them with Snakemake's own, so that the two cannot drift apart.
"""

import difflib
import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any

from epcore.errors import UserError
from epcore.plan import paths
from epcore.plan.datasets import OfficialData
from epcore.plan.imagenet_fs import ImageNetFsPlan, queries_of
from epcore.plan.load import pick
from epcore.plan.plan import Plan

REPORTS = (
    *("reports/co2.csv", "reports/co2.md", "tables/co2.tex"),
    *("figures/co2.pdf", "figures/co2.png"),
)


@dataclass(frozen=True, eq=False)
class Job:
    """One job: its rule, the file that it makes, and the jobs that it waits for.

    The other attributes are what the rule's wildcards say; `name` is that of a source, a table or
    a figure.
    """

    rule: str
    path: str
    needs: tuple["Job", ...] = ()
    name: str = ""
    dataset: str = ""
    backbone: str = ""
    recipe: str = ""
    seed: str = ""
    checkpoint: str = ""
    protocols: tuple[str, ...] = ()


class Jobs:
    """Jobs of a plan; what makes one file is one object, so that jobs that share it share it."""

    def __init__(self, plan: Plan) -> None:
        self.plan = plan
        self._made: dict[str, Job] = {}

    def of(self, *targets: str) -> list[Job]:
        """Every job that the targets need, each once, after those that it waits for.

        Raises:
            UserError: for a target whose jobs are not known here.
        """
        return _with_needs(map(self._target, targets))

    def tested_features(self, file: str) -> list[str]:
        """The features of every training that a file needs and any table or figure tests.

        Whatever is published waits for them, so that an embedding is always made together with
        its training: by itself it takes seconds, too little for a job of a cluster.

        Raises:
            UserError: for a file whose jobs are not known here.
        """
        return [job.path for job in self._embeddings(self._target(file))]

    def _target(self, target: str) -> Job:
        plan = self.plan
        tables, figures = plan.covered_tables, plan.covered_figures
        named: dict[str, Callable[[], list[Job]]] = {
            "all": lambda: [
                *self._published(tables, figures),
                *map(self._published_imagenet_fs, plan.imagenet_fs_tables),
                self._environment(),
                *self._contact_sheets(),
                *(self._reports() if plan.footprint.tracking else []),
            ],
            "ablation_pipeline": lambda: self._published(
                plan.ablation_tables, plan.ablation_figures
            ),
            "data_pictures": lambda: list(map(self._contact_sheet, plan.shown_datasets())),
        } | dict.fromkeys(REPORTS, self._reports)
        for name in tables:
            named[f"tables/{name}.tex"] = partial(self._published, [name], [])
        for name in plan.imagenet_fs.tables if plan.imagenet_fs else ():
            named[f"tables/{name}.tex"] = partial(self._imagenet_fs_target, name)
        for name in figures:
            for end in ("pdf", "png"):
                named[f"figures/{name}.{end}"] = partial(self._published, [], [name], [end])
        if target in named:
            jobs = named[target]()
            is_file = "." in target
            return jobs[0] if is_file else self._job(target, target, jobs)
        if (job := self.of_file(target)) is not None:
            return job
        raise UserError(f"unknown target {target!r}{self._known(target, named)}")

    def _known(self, target: str, named: Iterable[str]) -> str:
        """The end of an error message: the nearest targets, and which kinds there are."""
        near = " or ".join(map(repr, difflib.get_close_matches(target, named)))
        return (
            f"; {f'did you mean {near}? ' if near else ''}known are all, ablation_pipeline, "
            "data_pictures, tables/NAME.tex, figures/NAME.pdf and .png, and files below "
            f"results/{self.plan.scale_name}/"
        )

    def of_file(self, file: str) -> Job | None:
        """The job that makes a file of the results folder, if a rule makes it at this scale."""
        for pattern, make in self._makers:
            if match := pattern.fullmatch(file):
                wildcards = match.groupdict()
                if wildcards.pop("scale") != self.plan.scale_name:
                    return None
                try:
                    return make(**wildcards)
                except (KeyError, UserError, StopIteration):
                    return None  # a name that this config does not have
        return None

    @cached_property
    def _makers(self) -> list[tuple[re.Pattern[str], Callable[..., Job]]]:
        """Patterns of files and what makes them; of several that fit a file the first counts."""
        fs = self.plan.imagenet_fs
        exemplars = [*fs.exemplar_files("novel"), *fs.exemplar_files("val")] if fs else []
        trials = fs.trial_files() if fs else []
        packed = (paths.STORE, paths.IMAGES, paths.LABELS, paths.CHECKSUMS)
        figure = paths.FIGURE.removesuffix(".pdf")
        makes: dict[str, Callable[..., Job]] = {
            paths.RECEIPT: self._fetch,
            **dict.fromkeys(packed, self._data),
            paths.CONTACT_SHEET: self._contact_sheet,
            paths.EPISODES: self._episodes,
            paths.PRETRAIN: self._pretrain,
            paths.curve(paths.PRETRAIN): self._pretrain,
            paths.FINETUNE: self._finetune,
            paths.curve(paths.FINETUNE): self._finetune,
            paths.FEATURES: self._embed,
            paths.SCORES: self._evaluate,
            **dict.fromkeys((paths.EXEMPLAR_FOLDER, *exemplars), self._exemplars),
            paths.CLASSIFIER: self._classifier,
            paths.curve(paths.CLASSIFIER): self._classifier,
            paths.IMAGE_FEATURES: self._image_features,
            paths.QUERY_FEATURES: self._image_features,
            paths.GENERATOR: self._generator,
            **dict.fromkeys((paths.TRIAL_FOLDER, *trials), self._trials),
            **{f"results/{{scale}}/{report}": self._co2 for report in REPORTS},
            paths.TABLE_CSV: self._aggregate,
            paths.TABLE_TEX: self._latex,
            paths.TABLE_HTML: self._latex,
            f"{figure}-numbers.csv": self._figure,
            **{f"{figure}{end}": self._figure for end in (".pdf", ".png", ".csv")},
            paths.ENVIRONMENT: self._environment,
        }
        metas = ((paths.meta(pattern), make) for pattern, make in makes.items())
        return [(_matching(pattern), make) for pattern, make in (*makes.items(), *metas)]

    # -- a method for each rule ---------------------------------------------------------------

    def _fetch(self, source: str) -> Job:
        pick(self.plan.sources, source, "source", "target")
        return self._job("fetch", paths.RECEIPT.format(**self._scale, source=source), name=source)

    def _data(self, dataset: str) -> Job:
        settings = pick(self.plan.datasets, dataset, "data set", "target")
        sources = settings.sources if isinstance(settings, OfficialData) else []
        path = paths.STORE.format(**self._scale, dataset=dataset)
        return self._job("data", path, map(self._fetch, sources), dataset=dataset)

    def _contact_sheet(self, dataset: str) -> Job:
        path = paths.CONTACT_SHEET.format(**self._scale, dataset=dataset)
        return self._job("contact_sheet", path, [self._data(dataset)], dataset=dataset)

    def _episodes(self, dataset: str, protocol: str) -> Job:
        path = paths.EPISODES.format(**self._scale, dataset=dataset, protocol=protocol)
        needs = [self._data(dataset)]
        return self._job("episodes", path, needs, dataset=dataset, protocols=(protocol,))

    def _pretrain(self, dataset: str, backbone: str, recipe: str, seed: str) -> Job:
        names = {"dataset": dataset, "backbone": backbone, "recipe": recipe, "seed": seed}
        path = paths.PRETRAIN.format(**self._scale, **names)
        if candidates := self.plan.candidates(backbone, recipe, "pretraining"):
            needs = [self._pretrain(dataset, backbone, each, seed) for each in candidates]
            return self._job("select_pretrained", path, needs, **names, checkpoint="pretrain")
        needs = [self._data(dataset), self._episodes(dataset, "val-5way-5shot")]
        return self._job("pretrain", path, needs, **names, checkpoint="pretrain")

    def _finetune(self, dataset: str, backbone: str, recipe: str, seed: str, shot: str) -> Job:
        names = {"dataset": dataset, "backbone": backbone, "recipe": recipe, "seed": seed}
        path = paths.FINETUNE.format(**self._scale, **names, shot=shot)
        checkpoint = f"finetune-{shot}shot"
        if candidates := self.plan.candidates(backbone, recipe, "finetuning"):
            needs = [self._finetune(dataset, backbone, each, seed, shot) for each in candidates]
            return self._job("select_finetuned", path, needs, **names, checkpoint=checkpoint)
        needs = [
            self._data(dataset),
            self._episodes(dataset, f"val-5way-{shot}shot"),
            self._pretrain(dataset, backbone, self.plan.pretrained_as(backbone, recipe), seed),
        ]
        return self._job("finetune", path, needs, **names, checkpoint=checkpoint)

    def _embed(self, dataset: str, backbone: str, recipe: str, seed: str, checkpoint: str) -> Job:
        names = {"dataset": dataset, "backbone": backbone, "recipe": recipe, "seed": seed}
        path = paths.FEATURES.format(**self._scale, **names, checkpoint=checkpoint)
        shot = re.fullmatch(r"finetune-(\d+)shot", checkpoint)
        trained = self._finetune(**names, shot=shot[1]) if shot else self._pretrain(**names)
        tested = self.plan.tested_protocols(dataset, backbone, recipe, checkpoint)
        needs = [self._data(dataset), trained, *(self._episodes(dataset, p) for p in tested)]
        return self._job("embed", path, needs, **names, checkpoint=checkpoint)

    def _evaluate(self, dataset: str, backbone: str, recipe: str, seed: str, protocol: str) -> Job:
        """It scores all protocols of a suite."""
        suite = next(suite for suite in self.plan.suites if protocol in suite)
        names = {"dataset": dataset, "backbone": backbone, "recipe": recipe, "seed": seed}
        path = paths.SCORES.format(**self._scale, **names, protocol=suite[0])
        needs = [
            self._features(**names, protocol=suite[0]),
            *(self._episodes(dataset, tested) for tested in suite),
        ]
        return self._job("evaluate", path, needs, **names, protocols=suite)

    def _embeddings(self, job: Job) -> list[Job]:
        """Those that belong to the trainings below a job."""
        of_trainings = (
            (below.dataset, below.backbone, below.recipe, below.seed, below.checkpoint)
            for below in _with_needs([job])
            if below.rule in ("pretrain", "finetune")
        )
        return [
            self._embed(dataset, backbone, recipe, seed, checkpoint)
            for dataset, backbone, recipe, seed, checkpoint in of_trainings
            if self.plan.is_tested(dataset, backbone, recipe, checkpoint)
        ]

    def _features(self, dataset: str, backbone: str, recipe: str, seed: str, protocol: str) -> Job:
        """The features that a recipe is tested with."""
        shot = self.plan.protocols[protocol].checkpoint_shot
        owner, checkpoint = self.plan.checkpoint(backbone, recipe, shot)
        return self._embed(dataset, backbone, owner, seed, checkpoint)

    def _cells(self, table: str) -> list[Job]:
        """The tests of a table's cells."""
        found = map(self.of_file, (cell.scores for cell in self.plan.cells(table)))
        return list(dict.fromkeys(job for job in found if job is not None))

    def _aggregate(self, table: str) -> Job:
        if self.plan.imagenet_fs and table in self.plan.imagenet_fs.tables:
            return self._imagenet_fs_aggregate(table)
        path = paths.TABLE_CSV.format(**self._scale, table=table)
        return self._job("aggregate", path, self._cells(table), name=table)

    def _latex(self, table: str) -> Job:
        if self.plan.imagenet_fs and table in self.plan.imagenet_fs.tables:
            return self._imagenet_fs_table(table)
        path = paths.TABLE_TEX.format(**self._scale, table=table)
        return self._job("latex", path, [self._aggregate(table)], name=table)

    # ImageNet-FS; its jobs say its networks as backbones and its methods as recipes.

    @property
    def _imagenet_fs(self) -> ImageNetFsPlan:
        if self.plan.imagenet_fs is None:
            raise UserError(f"scale {self.plan.scale_name} has no ImageNet-FS")
        return self.plan.imagenet_fs

    def _pair(self, dataset: str) -> list[Job]:
        return [self._data(dataset), self._data(queries_of(dataset))]

    def _exemplars(self, dataset: str) -> Job:
        path = paths.EXEMPLAR_FOLDER.format(**self._scale, dataset=dataset)
        return self._job("imagenet_fs_exemplars", path, self._pair(dataset), dataset=dataset)

    def _classifier(self, dataset: str, network: str, seed: str) -> Job:
        place = {"dataset": dataset, "network": network, "seed": seed}
        path = paths.CLASSIFIER.format(**self._scale, **place)
        names = {"dataset": dataset, "backbone": network}
        return self._job("imagenet_fs_classifier", path, self._pair(dataset), **names)

    def _image_features(self, dataset: str, network: str, seed: str) -> Job:
        """Of both data sets."""
        place = {"dataset": dataset, "network": network, "seed": seed}
        path = paths.QUERY_FEATURES.format(**self._scale, **place)
        needs = [*self._pair(dataset), self._classifier(dataset, network, seed)]
        return self._job("imagenet_fs_features", path, needs, dataset=dataset, backbone=network)

    def _weighing(self, dataset: str, network: str, seed: str) -> list[Job]:
        """What generators and their tests need."""
        trained = self._classifier(dataset, network, seed)
        features = self._image_features(dataset, network, seed)
        return [*self._pair(dataset), trained, features, self._exemplars(dataset)]

    def _generator(self, dataset: str, network: str, seed: str, method: str) -> Job:
        self._imagenet_fs.generator(method)  # a name that there is
        place = {"dataset": dataset, "network": network, "seed": seed, "method": method}
        path = paths.GENERATOR.format(**self._scale, **place)
        needs = self._weighing(dataset, network, seed)
        names = {"dataset": dataset, "backbone": network, "recipe": method}
        return self._job("imagenet_fs_generator", path, needs, **names)

    def _trials(self, dataset: str, network: str, seed: str, method: str) -> Job:
        owner = self._imagenet_fs.generated_as(method)
        place = {"dataset": dataset, "network": network, "seed": seed, "method": method}
        path = paths.TRIAL_FOLDER.format(**self._scale, **place)
        needs = [
            *self._weighing(dataset, network, seed),
            self._generator(dataset, network, seed, owner),
        ]
        names = {"dataset": dataset, "backbone": network, "recipe": method}
        return self._job("imagenet_fs_evaluate", path, needs, **names)

    def _imagenet_fs_aggregate(self, table: str) -> Job:
        found = self._imagenet_fs.table(table)
        needs = [
            self._trials(run.dataset, run.network, str(seed), row.method)
            for run in self._imagenet_fs.runs(found)
            for row in found.rows
            for seed in self.plan.seeds
        ]
        csv = paths.TABLE_CSV.format(**self._scale, table=table)
        return self._job("imagenet_fs_aggregate", csv, needs, name=table)

    def _imagenet_fs_table(self, table: str) -> Job:
        """The typeset table."""
        path = paths.TABLE_TEX.format(**self._scale, table=table)
        needs = [self._imagenet_fs_aggregate(table)]
        return self._job("imagenet_fs_latex", path, needs, name=table)

    def _published_imagenet_fs(self, table: str) -> Job:
        needs = [self._imagenet_fs_table(table)]
        rule, path = "publish_imagenet_fs_table", f"tables/{table}.tex"
        return self._job(rule, path, needs, name=table)

    def _imagenet_fs_target(self, table: str) -> list[Job]:
        return [self._published_imagenet_fs(table)]

    def _figure(self, figure: str) -> Job:
        plan, rule, needs = self.plan, figure.replace("-", "_"), []
        if figure not in plan.covered_figures:
            raise UserError(f"scale {plan.scale_name} has no figure {figure!r}")
        runs = {"alpha": plan.alpha_runs, "interpolation": plan.interpolation_runs}
        if figure == "ablation":
            needs = self._cells("ablation")
        elif figure in runs:
            tested = runs[figure]()
            (dataset, _, _, protocol), seed = tested[0], str(plan.seeds[0])
            needs = [self._features(*run[:3], seed, run[3]) for run in tested]
            needs.append(self._episodes(dataset, protocol))
        elif figure in plan.covered_plots:
            rule, needs = "plot", [self._aggregate(table) for table in plan.plot_tables(figure)]
        elif figure in plan.curves:
            rule = "curves"
            needs = self._trained([training.checkpoint for training in plan.curves[figure]])
        elif figure == "gap":
            pairs = plan.gap_pairs()
            needs = self._trained([c for p in pairs for c in (p.checkpoint, p.against)])
        path = paths.FIGURE.format(**self._scale, figure=figure)
        return self._job(rule, path, needs, name=figure)

    def _trained(self, checkpoints: Iterable[str]) -> list[Job]:
        return [
            job for file in dict.fromkeys(checkpoints) if (job := self.of_file(file)) is not None
        ]

    def _environment(self) -> Job:
        """It reads what every training and every test of a table says of itself."""
        needs = [job for meta in self.plan.job_metas if (job := self.of_file(meta)) is not None]
        return self._job("environment", paths.ENVIRONMENT.format(**self._scale), needs)

    def _published_table(self, table: str) -> Job:
        made = self._latex(table)
        needs = [made, *self._embeddings(made)]
        return self._job("publish_table", f"tables/{table}.tex", needs, name=table)

    def _published_figure(self, figure: str, end: str) -> Job:
        made = self._figure(figure)
        needs = [made, *self._embeddings(made)]
        return self._job("publish_figure", f"figures/{figure}.{end}", needs, name=figure)

    def _published(
        self, tables: Iterable[str], figures: Iterable[str], ends: Iterable[str] = ("pdf", "png")
    ) -> list[Job]:
        pictures = [self._published_figure(name, end) for name in figures for end in ends]
        return [*map(self._published_table, tables), *pictures]

    def _contact_sheets(self) -> list[Job]:
        """Of the data sets that columns of the tables are of."""
        return [self._contact_sheet(name) for name in sorted(set(self.plan.scale.columns.values()))]

    def _co2(self) -> Job:
        """The CO2 report; it comes after all other jobs that are tracked."""
        plan = self.plan
        needs = [*map(self._latex, plan.covered_tables), *map(self._figure, plan.covered_figures)]
        needs += map(self._imagenet_fs_table, plan.imagenet_fs_tables)
        needs += self._contact_sheets()
        needs.append(self._environment())
        return self._job("co2", paths.CO2.format(**self._scale), needs)

    def _reports(self) -> list[Job]:
        return [self._job("publish_co2", "reports/co2.csv", [self._co2()])]

    # ---------------------------------------------------------------------------------------------

    @property
    def _scale(self) -> dict[str, str]:
        return {"scale": self.plan.scale_name}

    def _job(self, rule: str, path: str, needs: Iterable[Job] = (), **names: Any) -> Job:
        if path not in self._made:
            self._made[path] = Job(rule, path, tuple(dict.fromkeys(needs)), **names)
        return self._made[path]


def _matching(pattern: str) -> re.Pattern[str]:
    """What matches the paths of a pattern, its wildcards as groups."""
    numbered = re.escape(pattern).replace(r"\{seed\}", "(?P<seed>[0-9]+)")
    return re.compile(re.sub(r"\\{(\w+)\\}", r"(?P<\1>[a-z0-9-]+)", numbered))


def _with_needs(jobs: Iterable[Job]) -> list[Job]:
    """Jobs and all that they need, each once, after those that it waits for."""
    found: dict[Job, None] = {}

    def add(job: Job) -> None:
        if job not in found:
            for needed in job.needs:
                add(needed)
            found[job] = None

    for job in jobs:
        add(job)
    return list(found)
