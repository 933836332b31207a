"""The command `doctor`: what a target needs and is not there, with the remedy."""

import json
import re
import shutil
import sys
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from epcore.commands.check_methods import check_methods
from epcore.commands.dry_run import Job, planned
from epcore.config.scale import MainConfig
from epcore.data.config import Split
from epcore.data.datasets import OfficialData, OwnData
from epcore.data.fetch import find
from epcore.data.sources import Sources
from epcore.errors import UserError
from epcore.files import version_of
from epcore.plan import Plan, paths
from epcore.runtime.gpus import local_gpus

if TYPE_CHECKING:
    from epcore.data.contents import Contents

LOCK = "requirements.txt"
WITH_CUDA = (
    "install the locked version of torch for your driver's CUDA, as pytorch.org says: "
    "pip install --force-reinstall --no-deps torch==... --index-url ..."
)
IMPORT = "put it beside the Snakefile, install its package, or `export PYTHONPATH=FOLDER`"


@dataclass(frozen=True)
class Finding:
    """The result of a check in one line, with a remedy if something is missing."""

    what: str
    text: str
    remedy: str = ""

    def __str__(self) -> str:
        mark = "!!" if self.remedy else "ok"
        line = f"{mark}  {self.what + ':':<13} {self.text}"
        return f"{line}\n{'':18}-> {self.remedy}" if self.remedy else line


def run(targets: list[str], settings: Path, main: MainConfig, root: Path | None) -> None:
    """Prints what is present and what is missing; `root` defaults to config.yaml's data_root.

    Raises:
        UserError: if anything is missing, or Snakemake cannot plan a target.
    """
    plan, scale = Plan(settings, main.scale, main.seeds), main.scale
    recipes, root = plan.registry.recipes, root or Path(main.data_root)
    plan.check()
    plan.registry.check_recipes(recipes.names)
    check_methods(plan, recipes.names)
    print(f"For {' '.join(targets)} at scale {scale}:")
    findings = _print_findings(
        [
            *check_packages(settings.parent / LOCK),
            check_gpus(plan.registry.scale.requires_gpu and not main.allow_cpu),
            *(Finding("classifiers", problem, IMPORT) for problem in recipes.unusable.values()),
        ]
    )
    datasets = datasets_of(planned(plan, targets))
    findings += _print_findings([check_data(plan, name, root) for name in datasets])
    missing = sum(bool(finding.remedy) for finding in findings)
    if missing:
        raise UserError(f"{missing} of {len(findings)} checks ask for something, see above")


def _print_findings(findings: list[Finding]) -> list[Finding]:
    """Prints findings at once: those before the dry run are there if Snakemake fails in it."""
    print(*findings, sep="\n", flush=True)
    return findings


def datasets_of(jobs: Iterable[Job]) -> list[str]:
    """The data sets that jobs are to run on, in the order of their names."""
    return sorted({job.wildcards["dataset"] for job in jobs if "dataset" in job.wildcards})


# -- this machine ----------------------------------------------------------------------------------


def check_packages(lock: Path) -> Iterator[Finding]:
    """Python, and the packages that the lock names."""
    version = sys.version.split()[0]
    old = "install Python 3.11 or newer" if sys.version_info < (3, 11) else ""
    yield Finding("python", f"{version}, {sys.executable}", old)
    if not lock.is_file():
        remedy = "run epcore doctor in the folder of the checkout"
        yield Finding("packages", f"there is no {lock.name} here", remedy)
        return
    locked = dict(re.findall(r"^([\w.-]+)==([\w.]+)", lock.read_text(encoding="utf-8"), re.M))
    # A version without the +cpu or +cu130 of its build.
    actual = {name: (version_of(name) or "missing").split("+")[0] for name in locked}
    deviating = [
        f"{name} {actual[name]} for {version}"
        for name, version in locked.items()
        if actual[name] != version
    ]
    if deviating:
        text = f"not the locked version: {', '.join(deviating)}"
        yield Finding("packages", text, f"pip install -r {lock.name}")
    else:
        yield Finding("packages", f"all {len(locked)} as {lock.name} has them")


def check_gpus(required: bool) -> Finding:
    """GPUs of this machine, or of a cluster's nodes where this machine submits jobs to them."""
    import torch

    gpus = local_gpus()
    if gpus:
        visible_gpus, cuda_version = torch.cuda.device_count(), torch.version.cuda
        text = f"{len(gpus)}, torch {torch.__version__} sees {visible_gpus}"
        remedy = (
            f"update the NVIDIA driver: this torch needs CUDA {cuda_version}"
            if cuda_version
            else WITH_CUDA
        )
        return Finding("gpus", text, remedy if visible_gpus < len(gpus) else "")
    if shutil.which("sbatch"):
        text = f"none here, the cluster's nodes have them; torch {torch.__version__}"
        return Finding("gpus", text, WITH_CUDA if required and not torch.version.cuda else "")
    remedy = "a machine with a GPU, a cluster, or --config allow_cpu=true"
    return Finding("gpus", "none, trainings run on the CPU", remedy if required else "")


# -- data ------------------------------------------------------------------------------------------


def check_data(plan: Plan, name: str, root: Path) -> Finding:
    """What there is of a data set: its store, its files, or what makes it."""
    what, settings = f"data {name}", plan.registry.datasets[name]
    if isinstance(settings, OwnData):
        return _own(plan, name, settings)
    if (store := Path(plan.registry.path(paths.STORE, dataset=name))).is_file():
        try:
            classes = len(json.loads(store.read_text(encoding="utf-8"))["classes"])
        except (ValueError, LookupError, TypeError):
            return Finding(what, f"{store} is damaged", "delete it and run the same command again")
        return Finding(what, f"built, {classes} classes")
    if not isinstance(settings, OfficialData):
        return Finding(what, "is made when it is needed, without a download")
    files = {
        (source, key): file
        for source in settings.sources
        for key, file in plan.registry.sources[source].files.items()
    }
    absent = [place for place, file in files.items() if find(file, root) is None]
    by_hand = list(dict.fromkeys(place[0] for place in absent if not files[place].urls))
    text = f"{len(files) - len(absent)} of {len(files)} files found"
    if by_hand:
        remedy = f"epcore fetch {' '.join(by_hand)} says the steps"
        return Finding(what, f"{text}, others to be got by hand", remedy)
    return Finding(what, f"{text}; Snakemake downloads the others" if absent else text)


def _own(plan: Plan, name: str, settings: OwnData) -> Finding:
    """What the builder says of a user's own data, before it decodes pictures, and the episodes."""
    from epcore.data.build import contents_of
    from epcore.data.contents import check_classes

    what = f"data {name}"
    if not Path(settings.path).exists():
        remedy = f"put your images there, or correct path of {name}"
        return Finding(what, f"{settings.path} does not exist", remedy)
    try:
        contents = contents_of(settings, Sources.read([]))
        check_classes(name, contents)
        for split, numbers in _episodes(plan, name):
            _draw(contents, split, numbers)
    except UserError as error:
        return Finding(what, error.problem, error.remedy or f"mend it in {settings.path}")
    images, classes = len(contents.labels), len(contents.classes)
    return Finding(what, f"{images:,} images of {classes} classes in {settings.path}")


def _episodes(plan: Plan, dataset: str) -> Iterator[tuple[Split, dict[str, Any]]]:
    """Split and numbers of its tests, validations and fine-tunings: one episode of each kind.

    Fine-tuning draws from base classes after hours of pretraining. Of unbalanced queries all
    episodes count, as they will be drawn: each draws until its classes have images enough.
    """
    runs = [run for run in plan.tested.runs if run.dataset == dataset]
    tested = dict.fromkeys(run.protocol for run in runs)
    shots = [plan.registry.protocols[protocol].checkpoint_shot for protocol in tested]
    names = [f"val-5way-{shot}shot" for shot in (5, *shots)]
    names += [*tested, *filter(None, map(plan.runs.chosen_on, runs))]
    for name in dict.fromkeys(names):
        episodes = plan.data.episodes(name)
        numbers = episodes.model_dump(exclude={"stage_version", "split"})
        yield episodes.split, numbers | ({} if episodes.dirichlet else {"episodes": 1})
    for network in plan.tested.networks:
        finetuned = network.shot and not plan.compared.has(network.recipe)
        if network.dataset == dataset and finetuned:
            stage = plan.runs.finetune(network.backbone, network.recipe, network.seed, network.shot)
            way, queries = stage.finetuning.way, stage.finetuning.queries
            numbers = {"way": way, "shot": stage.shot, "queries": queries}
            yield "base", numbers | {"episodes": 1, "seed": 0}


def _draw(contents: "Contents", split: Split, numbers: dict[str, Any]) -> None:
    """Raises `UserError` if no such episodes can be drawn from the classes of the split."""
    from epcore.data.episodes import SETTINGS, Pool, sample

    names = {n: c.name for n, c in enumerate(contents.classes) if c.split == split}
    rows = tuple(np.flatnonzero(contents.labels == label) for label in names)
    pool = Pool(f"split {split}", tuple(names.values()), rows, settings=SETTINGS[split])
    sample(pool, **numbers)
