"""The command line: each stage of the pipeline is a sub-command that also runs by hand.

Stages are imported when they run, so that no job loads what it does not use.
"""

import argparse
import contextlib
import importlib
import json
import os
import signal
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from epcore import __version__
from epcore.errors import UserError
from epcore.interruption import Interrupted, leave_on_signals

EPILOG = """\
The workflow calls these stages; `snakemake -n -p TARGET` prints the exact commands. --config takes
JSON text or a JSON file with what the stage is told: the same text stands, key by key, in the
`config` of every meta.json that a stage wrote.
"""


FETCH = """\
Gets the files that data sets are built from, and checks that they are the published ones.

A file that is already below the data root, or below the folder that the environment variable
EPCORE_MIRROR names, is used from there and not changed. What is missing is downloaded from the
first address that gives it; a download that was interrupted goes on where it stopped. What may
not be downloaded by a program (ILSVRC2012) is asked for, with the steps to get it.

  epcore fetch                  what there is, how large, and what is already here
  epcore fetch cub              all files of the data set cub
  EPCORE_MIRROR=/datasets epcore fetch cifar-fs fc100
"""


DAY = 86_400  # seconds
FIGURE = "figure to write (.pdf); .png, .csv and -numbers.csv go beside it"


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="epcore",
        description="Stages of the EPNet reproduction, from data to tables.",
        epilog=EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--version", action="version", version=__version__)
    stages = parser.add_subparsers(dest="stage", required=True, metavar="STAGE")

    def stage(name: str, summary: str, config: bool = True) -> argparse.ArgumentParser:
        sub = stages.add_parser(name, help=summary, description=summary)
        if config:
            sub.add_argument("--config", required=True, help="JSON text or file")
        return sub

    def path(sub: argparse.ArgumentParser, name: str, text: str, **more: Any) -> None:
        sub.add_argument(f"--{name}", required=True, type=Path, help=text, **more)

    def device(sub: argparse.ArgumentParser) -> None:
        sub.add_argument(
            "--gpus", type=_count, metavar="N",
            help="take N free GPUs of this machine, 0 for none (default: all that there are)",
        )  # fmt: skip
        sub.add_argument(
            "--allow-cpu", action="store_true", help="compute without the GPUs if there are none"
        )

    def training(sub: argparse.ArgumentParser) -> None:
        path(sub, "data", "folder of the packed data set")
        path(sub, "episodes", "validation episodes (.npz)")
        path(sub, "out", "checkpoint to write (.pt); curve (.csv) and .meta.json go beside it")
        sub.add_argument("--require-gpu", action="store_true", help="stop where there is no GPU")
        device(sub)

    def pair(sub: argparse.ArgumentParser) -> None:
        path(sub, "data", "folder of the packed data set")
        path(sub, "queries", "folder of the packed data set of its queries")

    def embedded(sub: argparse.ArgumentParser) -> None:
        path(sub, "features", "folder of images.npy and queries.npy")
        path(sub, "checkpoint", "checkpoint of imagenet-fs-classifier (.pt)")
        path(sub, "exemplars", "exemplar files, one for each K (.npz)", nargs="+")

    sub = stages.add_parser(
        "fetch",
        help="download or find the files of data sets, and verify them",
        description=FETCH,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    sub.add_argument(
        "names", nargs="*", metavar="NAME",
        help="a data set or a source of datasets.yaml; without any, what there is",
    )  # fmt: skip
    sub.add_argument(
        "--settings", type=Path, default=Path("config"), metavar="FOLDER",
        help="folder of datasets.yaml (default: config)",
    )  # fmt: skip
    sub.add_argument(
        "--root", type=Path, default=Path("data"), metavar="FOLDER",
        help="data root: where files are looked for and downloaded to (default: data)",
    )  # fmt: skip
    sub.add_argument(
        "--receipt", type=Path, metavar="FILE",
        help="write where the files of one source are, which `epcore data` reads",
    )  # fmt: skip

    sub = stage("data", "build a data set into a packed store")
    sub.add_argument(
        "--sources", type=Path, nargs="*", default=[], metavar="RECEIPT",
        help="receipts that `epcore fetch` wrote for the data set's sources (.json)",
    )  # fmt: skip
    path(sub, "out", "folder to write")

    sub = stage("contact-sheet", "draw a picture of a data set", config=False)
    path(sub, "data", "folder of the packed data set")
    path(sub, "out", "picture to write (.png)")

    sub = stage("episodes", "sample and freeze episodes")
    path(sub, "data", "folder of the packed data set")
    path(sub, "out", "episode file to write (.npz)")

    training(stage("pretrain", "train a network on base classes and rotations"))

    sub = stage("finetune", "fine-tune a pretrained network on episodes of base classes")
    training(sub)
    path(sub, "checkpoint", "pretrained checkpoint (.pt)")

    sub = stage("select", "take the best of several checkpoints on validation")
    path(sub, "checkpoints", "those of the candidates, in their order (.pt)", nargs="+")
    path(sub, "out", "checkpoint to write (.pt); curve (.csv) and .meta.json go beside it")

    sub = stage("embed", "compute the features that episodes need, once per checkpoint")
    path(sub, "data", "folder of the packed data set")
    path(sub, "checkpoint", "checkpoint (.pt)")
    path(sub, "episodes", "episode files (.npz)", nargs="+")
    path(sub, "out", "feature file to write (.npz)")
    device(sub)

    sub = stage("evaluate", "classify the queries of frozen episodes")
    path(sub, "features", "feature file (.npz)")
    path(sub, "episodes", "episode files (.npz)", nargs="+")
    path(sub, "out", "per-episode accuracies to write (.csv), one for each file", nargs="+")

    sub = stage("aggregate", "means and intervals of a table's cells, beside the paper's")
    sub.add_argument("--paper", type=Path, help="what the paper prints, if it does (.csv)")
    sub.add_argument("--rerun", type=Path, help="what its authors print of a re-run (.csv)")
    path(sub, "out", "table to write (.csv)")

    sub = stage("ablation", "draw what an ablation's factors are worth")
    path(sub, "paper", "what the paper prints (.csv)")
    path(sub, "out", "figure to write (.pdf); .png and .csv go beside it")

    sub = stage("alpha", "choose both alphas on validation classes")
    path(sub, "episodes", "validation episodes (.npz)")
    path(sub, "out", "figure to write (.pdf); .png and .csv go beside it")

    sub = stage("two-moons", "propagate two moons, in random batches and all together")
    path(sub, "out", FIGURE)

    sub = stage("decision-boundary", "draw decision boundaries before and after propagation")
    path(sub, "out", FIGURE)

    sub = stage("interpolation", "class probabilities between pairs of embeddings")
    path(sub, "episodes", "episode file (.npz)")
    path(sub, "out", FIGURE)

    sub = stage("imagenet-fs-exemplars", "draw and freeze the exemplars of ImageNet-FS")
    pair(sub)
    path(sub, "out", "folder to write, a file for each split and K (.npz)")

    sub = stage("imagenet-fs-classifier", "train the cosine classifier of base classes")
    pair(sub)
    path(sub, "out", "checkpoint to write (.pt); curve (.csv) and .meta.json go beside it")
    sub.add_argument("--require-gpu", action="store_true", help="stop where there is no GPU")
    device(sub)

    sub = stage("imagenet-fs-features", "compute the features of all images of both data sets")
    pair(sub)
    path(sub, "checkpoint", "checkpoint of imagenet-fs-classifier (.pt)")
    path(sub, "out", "folder to write: images.npy, queries.npy, a .meta.json of each")
    device(sub)

    sub = stage("imagenet-fs-generator", "train a generator of class weights")
    pair(sub)
    embedded(sub)
    path(sub, "out", "generators to write (.pt); curves (.csv) and .meta.json go beside them")
    device(sub)

    sub = stage("imagenet-fs-evaluate", "test a generator of class weights on frozen exemplars")
    pair(sub)
    embedded(sub)
    path(sub, "generator", "trained generators (.pt)")
    path(sub, "out", "folder to write, a file for each measure and K (.csv)")

    sub = stage("latex", "typeset a table")
    path(sub, "table", "aggregated table (.csv)")
    path(sub, "out", "LaTeX to write (.tex); the same as a page (.html) goes beside it")

    sub = stage("plot", "draw accuracy over shots, classes or unlabelled images")
    path(sub, "tables", "aggregated tables (.csv)", nargs="+")
    path(sub, "out", "figure to write (.pdf); .png and .csv go beside it")

    sub = stage("curves", "draw the curves of trainings")
    path(sub, "out", "figure to write (.pdf); .png and .csv go beside it")

    sub = stage("gap", "draw how far apart two recipes are while they train")
    path(sub, "out", "figure to write (.pdf); .png and .csv go beside it")

    sub = stage("environment", "say where jobs ran and with what")
    path(sub, "out", "page to write (.html)")

    sub = stage("co2", "report energy and CO2 of every job, rule, table and figure", config=False)
    _of_scale(sub)
    path(sub, "ledger", "what the jobs of the scale used (.jsonl)")
    path(sub, "out", "report to write (.csv); co2.md goes beside it")
    path(sub, "tex", "table to write (.tex)")
    path(sub, "drawing", "figure to write (.pdf); .png goes beside it")

    sub = stage("forecast", "say what is left to run for a target, and what it costs", config=False)
    _of_scale(sub)
    sub.add_argument("targets", nargs="*", default=["all"], metavar="TARGET",
        help="what Snakemake would be asked for, e.g. tables/main.tex (default: all)",
    )  # fmt: skip
    sub.add_argument("--device", choices=("cpu", "gpu"),
        help="what trains (default: a GPU if there is one here, or the scale requires one)",
    )  # fmt: skip
    sub.add_argument("--medians", dest="medians_alone", action="store_true",
        help="print what the jobs of the scale took here, as config/measured.csv has it",
    )  # fmt: skip

    sub = stage("status", "how far the running trainings are", config=False)
    sub.add_argument(
        "--results", type=Path, default=Path("results"), metavar="FOLDER",
        help="results folder, here or on a shared disk (default: results)",
    )  # fmt: skip
    sub.add_argument(
        "--watch", type=_seconds, nargs="?", const=5.0, metavar="SECONDS",
        help="look again every so many seconds (default: 5), until Ctrl-C",
    )  # fmt: skip

    sub = stage("doctor", "what a target needs and is not there, with the remedy", config=False)
    sub.add_argument(
        "targets", nargs="*", metavar="TARGET", default=["all"],
        help="what Snakemake would be asked for, e.g. tables/main.tex (default: all)",
    )  # fmt: skip
    _of_scale(sub)
    sub.add_argument(
        "--root", type=Path, metavar="FOLDER",
        help="data root (default: data_root of config.yaml)",
    )  # fmt: skip
    sub.add_argument(
        "--profile", type=Path, metavar="FOLDER",
        help="check this cluster profile too, e.g. workflow/profiles/slurm",
    )  # fmt: skip
    return parser


def _seconds(text: str) -> float:
    """A time to wait."""
    with contextlib.suppress(ValueError):
        if 0 < float(text) <= DAY:
            return float(text)
    raise argparse.ArgumentTypeError(f"expected more than 0 and at most {DAY} seconds, got {text}")


def _count(text: str) -> int:
    """A number of things to take."""
    with contextlib.suppress(ValueError):
        if int(text) >= 0:
            return int(text)
    raise argparse.ArgumentTypeError(f"expected a whole number, 0 or more, got {text}")


def _of_scale(sub: argparse.ArgumentParser) -> None:
    sub.add_argument("--scale", help="scale (default: that of config.yaml)")
    sub.add_argument("--settings", type=Path, default=Path("config"), metavar="FOLDER",
        help="config folder (default: config)",
    )  # fmt: skip
    sub.add_argument("--seeds", type=int, nargs="+", metavar="SEED",
        help="seeds of trainings, as --config seeds=... has them (default: the scale's)",
    )  # fmt: skip


# Stage -> module with its run(), and the model of its --config.
STAGES: dict[str, tuple[str, str | None]] = {
    "fetch": ("epcore.data.fetch", None),
    "data": ("epcore.data.build", "DataStage"),
    "contact-sheet": ("epcore.data.contact_sheet", None),
    "episodes": ("epcore.data.episodes", "EpisodesStage"),
    "pretrain": ("epcore.training.pretrain", "PretrainStage"),
    "finetune": ("epcore.training.finetune", "FinetuneStage"),
    "select": ("epcore.training.select", "SelectStage"),
    "embed": ("epcore.evaluation.embed", "EmbedStage"),
    "evaluate": ("epcore.evaluation.evaluate", "EvaluateStage"),
    "aggregate": ("epcore.report.aggregate", "AggregateStage"),
    "ablation": ("epcore.report.ablation", "AblationStage"),
    "alpha": ("epcore.report.alpha", "AlphaStage"),
    "two-moons": ("epcore.analysis.two_moons", "TwoMoonsStage"),
    "decision-boundary": ("epcore.analysis.decision_boundary", "DecisionBoundaryStage"),
    "interpolation": ("epcore.analysis.interpolation", "InterpolationStage"),
    "imagenet-fs-exemplars": ("epcore.imagenet_fs.exemplars", "ExemplarsStage"),
    "imagenet-fs-classifier": ("epcore.imagenet_fs.classifier", "ClassifierStage"),
    "imagenet-fs-features": ("epcore.imagenet_fs.features", "ImageFeaturesStage"),
    "imagenet-fs-generator": ("epcore.imagenet_fs.train_generator", "GeneratorStage"),
    "imagenet-fs-evaluate": ("epcore.imagenet_fs.evaluate", "TrialsStage"),
    "latex": ("epcore.report.latex", "LatexStage"),
    "plot": ("epcore.report.plot", "PlotStage"),
    "curves": ("epcore.report.curves", "CurvesStage"),
    "gap": ("epcore.report.gap", "GapStage"),
    "environment": ("epcore.report.environment", "EnvironmentStage"),
    "co2": ("epcore.footprint.report", None),
    "forecast": ("epcore.footprint.forecast", None),
    "status": ("epcore.status", None),
    "doctor": ("epcore.doctor", None),
}


def _run(arguments: dict[str, Any]) -> None:
    name = arguments.pop("stage")
    module, model = STAGES[name]
    if model is not None:
        from epcore.plan import stages
        from epcore.plan.load import validate

        content = _read_config(arguments.pop("config"))
        arguments["stage"] = validate(getattr(stages, model), content, "--config")
    if "scale" in arguments and arguments["scale"] is None:
        from epcore.plan import Plan
        from epcore.plan.load import read_yaml

        arguments["scale"] = Plan.scale_of(read_yaml(arguments["settings"] / "config.yaml"))
    gpus, allow_cpu = arguments.pop("gpus", None), arguments.pop("allow_cpu", False)
    if gpus is not None:
        from epcore.gpus import claim

        gpus = claim(gpus, allow_cpu)
    if name == "pretrain":
        arguments["gpus"] = gpus or 1  # that train together
    with _tracking(name, arguments, gpus or 0):
        importlib.import_module(module).run(**arguments)


def _tracking(
    name: str, arguments: dict[str, Any], gpus: int
) -> contextlib.AbstractContextManager[None]:
    """Energy of the job, where the workflow asks for it; reports are not jobs."""
    made = arguments.get("out") or arguments.get("receipt")
    if made is None or name == "co2":
        return contextlib.nullcontext()
    if isinstance(made, list):
        made = made[0]
    made = made / {"data": "store.json", "imagenet-fs-features": "queries.npy"}.get(name, "")
    from epcore.footprint.tracker import tracked

    return tracked(name, made, gpus)


def _read_config(text: str) -> Any:
    try:
        if not text.lstrip().startswith("{"):
            text = Path(text).read_text(encoding="utf-8")
        return json.loads(text)
    except OSError as error:
        raise UserError(f"--config: {text} cannot be read ({error.strerror})") from None
    except UnicodeDecodeError:
        raise UserError(f"--config: {text}: this is not UTF-8 text; save it as UTF-8") from None
    except json.JSONDecodeError as error:
        raise UserError(f"--config: this is not valid JSON ({error})") from None


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs one stage; 0 if it succeeded, 2 after a mistake that the message explains.

    After a signal it is 128 and the signal's number, as shells have it.
    """
    leave_on_signals()
    try:
        _run(vars(_parser().parse_args(arguments)))
    except UserError as error:
        print(f"epcore: {error}", file=sys.stderr)
        return 2
    except BrokenPipeError:  # what was piped into has seen enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 128 + signal.SIGPIPE
    except OSError as error:
        where = f"{error.filename}: " if error.filename else ""
        print(f"epcore: {where}{error.strerror or error}", file=sys.stderr)
        return 2
    except Interrupted as request:
        print("epcore: interrupted; what was finished is kept", file=sys.stderr)
        return 128 + request.number
    return 0
