"""The stages of the pipeline, which the workflow runs: each reads a config and files, writes files.

A compute stage is a command, `epcore STAGE --config JSON --data ...`, whose options are the
parameters of the stage's `run()`. A report stage is run by workflow/scripts/report.py, because its
config names hundreds of files and a command line is limited to 128 KiB.
"""

import argparse
import inspect
import json
from collections.abc import Callable, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any, Literal

from epcore.analysis import config as analysis
from epcore.commands.arguments import number
from epcore.data import config as data
from epcore.errors import UserError
from epcore.evaluation import config as evaluation
from epcore.footprint.config import Co2Config
from epcore.imagenet_fs import config as imagenet_fs
from epcore.report import claim_config, figure_config
from epcore.report import config as report
from epcore.runtime.environment import compute_with
from epcore.settings import StageConfig, validate
from epcore.training import config as training


@dataclass(frozen=True)
class Stage:
    """How a stage is run.

    module: the module with its `run()`, imported only then: no job loads what it does not use.
    config: the model of its config; None if the files say everything.
    gpu: whether it uses a GPU where there is one, or has to where a scale says so.
    measured: whether codecarbon measures its energy without a GPU too; that of stages which end
        within seconds is estimated.
    main_output: the file of the folder `out` that the job is named after where energy is counted.
    counted: whether its energy is counted at all.
    """

    module: str
    config: type[StageConfig] | None = None
    gpu: Literal["uses", "may require"] | None = None
    measured: bool = False
    main_output: str = ""
    counted: bool = True


COMPUTE = {
    "data": Stage("data.build", data.DataConfig, main_output="store.json"),
    "contact-sheet": Stage("data.contact_sheet"),
    "episodes": Stage("data.episodes", data.EpisodesConfig),
    "pretrain": Stage("training.pretrain", training.PretrainConfig, "may require", measured=True),
    "finetune": Stage("training.finetune", training.FinetuneConfig, "may require", measured=True),
    "select": Stage("training.select", training.SelectConfig),
    "meta-train": Stage(
        "training.episodic", training.MetaTrainConfig, "may require", measured=True
    ),
    "embed": Stage("evaluation.embed", evaluation.EmbedConfig, "uses"),
    "base-classes": Stage("evaluation.base_classes", evaluation.BaseClassesConfig, "uses"),
    "evaluate": Stage("evaluation.evaluate", evaluation.EvaluateConfig),
    "evaluate-classifiers": Stage(
        "evaluation.evaluate_classifiers", evaluation.EvaluateClassifiersConfig
    ),
    "meta-test": Stage("evaluation.meta_test", evaluation.MetaTestConfig, "uses"),
    "imagenet-fs-exemplars": Stage("imagenet_fs.exemplars", imagenet_fs.ExemplarsConfig),
    "imagenet-fs-classifier": Stage(
        "imagenet_fs.classifier", imagenet_fs.ClassifierConfig, "may require", measured=True
    ),
    "imagenet-fs-features": Stage(
        "imagenet_fs.features",
        imagenet_fs.ImageFeaturesConfig,
        "uses",
        measured=True,
        main_output="queries.npy",
    ),
    "imagenet-fs-generator": Stage(
        "imagenet_fs.train_generator", imagenet_fs.GeneratorConfig, "uses", measured=True
    ),
    "imagenet-fs-evaluate": Stage("imagenet_fs.evaluate", imagenet_fs.TrialsConfig, "uses"),
    "co2": Stage("report.co2", Co2Config, counted=False),
}
REPORT = {
    "table": Stage("report.table", report.TableConfig),
    "claims": Stage("report.claims", claim_config.ClaimsConfig),
    "two-moons": Stage("analysis.two_moons", analysis.TwoMoonsConfig),
    "decision-boundary": Stage("analysis.decision_boundary", analysis.DecisionBoundaryConfig),
    "interpolation": Stage("analysis.interpolation", analysis.InterpolationConfig),
    "alpha": Stage("report.alpha", figure_config.AlphaConfig),
    "plot": Stage("report.plot", figure_config.PlotConfig),
    "curves": Stage("report.curves", figure_config.CurvesConfig),
    "gap": Stage("report.gap", figure_config.GapConfig),
    "ablation": Stage("report.ablation", figure_config.TableFigureConfig),
    "per-episode": Stage("report.per_episode", figure_config.TableFigureConfig),
    "speed": Stage("report.speed", figure_config.TableFigureConfig),
    "environment": Stage("report.environment", report.EnvironmentConfig),
    "reproduction": Stage("report.reproduction", report.ReproductionConfig),
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
    _run(name, stage, run, {"config": config, "out": out, **files})


def run_command(name: str, words: Sequence[str]) -> None:
    """Runs a compute stage as its command line says.

    Raises:
        UserError: if `--config` is no config of the stage, or for what the stage itself meets.
    """
    stage = COMPUTE[name]
    first = argparse.ArgumentParser(add_help=False, allow_abbrev=False)
    first.add_argument("--config")
    text = first.parse_known_args(words)[0].config
    config = None
    if stage.config is not None and text is not None:
        config = validate(stage.config, _read_json(text), "--config")
        # NumPy and torch read the number when they are imported, with the stage's module.
        compute_with(getattr(config, "threads", 1))
    run = _run_of(stage)
    arguments = vars(_parser(name, stage, run).parse_args(words))
    if stage.config is not None:
        arguments["config"] = config
    gpus = 0
    if stage.gpu:
        cards, allow_cpu = arguments.pop("gpus"), arguments.pop("allow_cpu")
        if cards is not None:
            from epcore.runtime.gpus import claim

            gpus = claim(cards, allow_cpu)
        if "gpus" in inspect.signature(run).parameters:
            arguments["gpus"] = gpus or 1  # processes that train together
    _run(name, stage, run, arguments, gpus)


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
    with tracked(name, out, gpus, stage.measured) if stage.counted else nullcontext():
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
            "--gpus", type=number(0), metavar="N",
            help="take N free GPUs of this machine, 0 for none (default: all that there are)",
        )  # fmt: skip
        parser.add_argument("--allow-cpu", action="store_true", help="compute without, if need be")
    for parameter in inspect.signature(run).parameters.values():
        if parameter.name not in ("config", "gpus"):
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
        raise UserError(f"--config: {text}: this is not UTF-8 text", "save it as UTF-8") from None
    except ValueError as error:
        raise UserError(f"--config: this is not valid JSON ({error})") from None
