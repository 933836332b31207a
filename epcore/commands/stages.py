"""The stages of the pipeline, which the workflow runs: each reads a config and files, writes files.

A compute stage is a command, `epcore STAGE --config JSON --data ...`, whose options are the
parameters of the stage's `run()`. A report stage is run by workflow/scripts/report.py, because its
config names hundreds of files and a command line is limited to 128 KiB.
"""

import argparse
import inspect
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any, Literal

from epcore.commands.arguments import count
from epcore.errors import UserError
from epcore.plan.environment import compute_with
from epcore.plan.load import validate
from epcore.plan.stages import Stage as StageConfig
from epcore.plan.stages import (
    claims,
    data,
    figures,
    imagenet_fs,
    reports,
    tables,
    testing,
    training,
)


@dataclass(frozen=True)
class Stage:
    """How a stage is run.

    module: the module with its `run()`, imported only then: no job loads what it does not use.
    config: the model of its config; None if the files say everything.
    gpu: whether it uses a GPU where there is one, or has to where a scale says so.
    measured: whether codecarbon measures its energy; of stages that end within a second the energy
        is estimated.
    main_output: the file of the folder `out` that the job is named after in the ledger.
    """

    module: str
    config: type[StageConfig] | None = None
    gpu: Literal["uses", "may require"] | None = None
    measured: bool = False
    main_output: str = ""


COMPUTE = {
    "data": Stage("data.build", data.DataStage, measured=True, main_output="store.json"),
    "contact-sheet": Stage("data.contact_sheet"),
    "episodes": Stage("data.episodes", data.EpisodesStage),
    "pretrain": Stage("training.pretrain", training.PretrainStage, "may require", measured=True),
    "finetune": Stage("training.finetune", training.FinetuneStage, "may require", measured=True),
    "select": Stage("training.select", training.SelectStage),
    "meta-train": Stage("training.episodic", training.MetaTrainStage, "may require", measured=True),
    "embed": Stage("evaluation.embed", testing.EmbedStage, "uses", measured=True),
    "base-classes": Stage(
        "evaluation.base_classes", testing.BaseClassesStage, "uses", measured=True
    ),
    "evaluate": Stage("evaluation.evaluate", testing.EvaluateStage, measured=True),
    "evaluate-classifiers": Stage(
        "evaluation.evaluate_classifiers", testing.EvaluateClassifiersStage, measured=True
    ),
    "meta-test": Stage("evaluation.meta_test", testing.MetaTestStage, "uses", measured=True),
    "imagenet-fs-exemplars": Stage("imagenet_fs.exemplars", imagenet_fs.ExemplarsStage),
    "imagenet-fs-classifier": Stage(
        "imagenet_fs.classifier", imagenet_fs.ClassifierStage, "may require", measured=True
    ),
    "imagenet-fs-features": Stage(
        "imagenet_fs.features",
        imagenet_fs.ImageFeaturesStage,
        "uses",
        measured=True,
        main_output="queries.npy",
    ),
    "imagenet-fs-generator": Stage(
        "imagenet_fs.train_generator", imagenet_fs.GeneratorStage, "uses", measured=True
    ),
    "imagenet-fs-evaluate": Stage("imagenet_fs.evaluate", imagenet_fs.TrialsStage, measured=True),
}
REPORT = {
    "table": Stage("report.table", tables.TableStage),
    "claims": Stage("report.claims", claims.ClaimsStage),
    "two-moons": Stage("analysis.two_moons", figures.TwoMoonsStage),
    "decision-boundary": Stage("analysis.decision_boundary", figures.DecisionBoundaryStage),
    "interpolation": Stage("analysis.interpolation", figures.InterpolationStage, measured=True),
    "alpha": Stage("report.alpha", figures.AlphaStage, measured=True),
    "ablation": Stage("report.ablation", figures.AblationStage),
    "plot": Stage("report.plot", figures.PlotStage),
    "curves": Stage("report.curves", figures.CurvesStage),
    "gap": Stage("report.gap", figures.GapStage),
    "speed": Stage("report.speed", figures.SpeedStage),
    "per-episode": Stage("report.per_episode", figures.PerEpisodeStage),
    "environment": Stage("report.environment", reports.EnvironmentStage),
    "reproduction": Stage("report.reproduction", reports.ReproductionStage),
}


def run_report(name: str, text: str, inputs: Mapping[str, str | Sequence[str]], out: Path) -> None:
    """Runs a report stage.

    Args:
        name: of the stage.
        text: its config as JSON.
        inputs: files by name; those named after a parameter of `run()` are passed to it.
        out: what it makes.
    """
    stage = REPORT[name]
    assert stage.config is not None
    config = stage.config.model_validate_json(text)
    compute_with(getattr(config, "threads", 1))
    files: dict[str, Any] = {}
    run = _run_of(stage)
    for parameter in inspect.signature(run).parameters.values():
        if parameter.name in inputs:
            value = inputs[parameter.name]
            paths = [Path(value)] if isinstance(value, str) else [Path(file) for file in value]
            if parameter.annotation == list[Path]:
                files[parameter.name] = paths
            elif paths:  # no input where a scale has none
                files[parameter.name] = paths[0]
    _run(name, stage, run, {"stage": config, "out": out, **files})


def run_command(name: str, words: Sequence[str]) -> None:
    """Runs a compute stage as its command line says.

    Raises:
        UserError: if `--config` is no config of the stage, or for what the stage itself meets.
    """
    stage = COMPUTE[name]
    first = argparse.ArgumentParser(add_help=False, allow_abbrev=False)
    first.add_argument("--config")
    text = first.parse_known_args(words)[0].config
    config = {}
    if stage.config is not None and text is not None:
        config = {"stage": validate(stage.config, _read_json(text), "--config")}
        # NumPy and torch read the number when they are imported, with the stage's module.
        compute_with(getattr(config["stage"], "threads", 1))
    run = _run_of(stage)
    arguments = vars(_parser(name, stage, run).parse_args(words))
    arguments.pop("config", None)
    gpus = 0
    if stage.gpu:
        wanted, allow_cpu = arguments.pop("gpus"), arguments.pop("allow_cpu")
        if wanted is not None:
            from epcore.gpus import claim

            gpus = claim(wanted, allow_cpu)
        if "gpus" in inspect.signature(run).parameters:
            arguments["gpus"] = gpus or 1  # processes that train together
    _run(name, stage, run, {**config, **arguments}, gpus)


def _run(
    name: str,
    stage: Stage,
    run: Callable[..., None],
    arguments: Mapping[str, Any],
    gpus: int = 0,
) -> None:
    """Runs a stage and measures its energy."""
    from epcore.footprint.tracker import tracked

    out = arguments["out"] / stage.main_output
    with tracked(name, out, gpus, stage.measured):
        run(**arguments)


def _run_of(stage: Stage) -> Callable[..., None]:
    """The stage's `run()`, whose module is imported here."""
    run: Callable[..., None] = import_module(f"epcore.{stage.module}").run
    return run


def _parser(name: str, stage: Stage, run: Callable[..., None]) -> argparse.ArgumentParser:
    """The options of a stage: the parameters of its `run()`."""
    parser = argparse.ArgumentParser(
        prog=f"epcore {name}",
        description=inspect.getdoc(run),
        allow_abbrev=False,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    if stage.config is not None:
        parser.add_argument("--config", required=True, metavar="JSON", help="text or file")
    if stage.gpu:
        parser.add_argument(
            "--gpus", type=count, metavar="N",
            help="take N free GPUs of this machine, 0 for none (default: all that there are)",
        )  # fmt: skip
        parser.add_argument("--allow-cpu", action="store_true", help="compute without, if need be")
    for parameter in inspect.signature(run).parameters.values():
        if parameter.name not in ("stage", "gpus"):
            _add_option(parser, parameter)
    return parser


def _add_option(parser: argparse.ArgumentParser, parameter: inspect.Parameter) -> None:
    """A list may be empty, and a file that is optional may be named without a value.

    Rules name options whose input a job may lack.
    """
    option = f"--{parameter.name.replace('_', '-')}"
    required = parameter.default is inspect.Parameter.empty
    if parameter.annotation is bool:
        parser.add_argument(option, action="store_true")
    elif parameter.annotation == list[Path]:
        parser.add_argument(option, type=Path, nargs="*", default=[], metavar="FILE")
    else:
        parser.add_argument(
            option, type=Path, nargs=None if required else "?", required=required, metavar="FILE"
        )


def _read_json(text: str) -> Any:
    """What a text or, if it begins with no brace, the file that it names says."""
    try:
        if not text.lstrip().startswith("{"):
            text = Path(text).read_text(encoding="utf-8")
        return json.loads(text)
    except OSError as error:
        raise UserError(f"--config: {text} cannot be read ({error.strerror})") from None
    except UnicodeDecodeError:
        raise UserError(f"--config: {text}: this is not UTF-8 text; save it as UTF-8") from None
    except ValueError as error:
        raise UserError(f"--config: this is not valid JSON ({error})") from None
