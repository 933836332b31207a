# What all rules share: the plan of the scale, names that paths may hold, the environment of jobs.
import os
import shutil
import signal
import sys
import threading
from difflib import get_close_matches
from inspect import signature
from pathlib import Path

from snakemake.cli import get_argument_parser

from epcore.config.datasets import QUICKLY_PACKED
from epcore.config.load import read_yaml
from epcore.config.scale import MainConfig
from epcore.errors import UserError, replace_unencodable
from epcore.files import fingerprint
from epcore.footprint.machine import carbon_intensity
from epcore.plan import Plan, paths
from epcore.plan.environment import check_unedited
from epcore.plan.run import Run
from epcore.plan.runs import phase_of
from epcore.report.markup import to_text
from epcore.runtime.environment import ENVIRONMENT
from epcore.runtime.gpus import local_gpus
from epcore.runtime.resume import discard_old_states
from epcore.settings import config_text, suggest, validate

# Snakemake takes what stands in braces for a name to fill in, in paths of its own too.
if set("{}") & set(str(workflow.basedir)):
    sys.exit(
        f"epcore: the path {workflow.basedir} has braces, which Snakemake takes for names to fill "
        "in; rename the folder"
    )

# Beside the Snakefile, or beside the folder workflow/ that it lies in, as snakedeploy has it.
# Relative to where Snakemake runs, so that a project may be moved and stays up to date.
BASE = Path(workflow.basedir)
BASE = BASE if (BASE / "config").is_dir() else BASE.parent
CONFIG = Path(os.path.relpath(BASE)) / "config"

# A mistake in the config ends here, in one line.
try:
    read_yaml(CONFIG / "config.yaml")
except UserError as error:
    sys.exit(f"epcore: {error}")


configfile: str(CONFIG / "config.yaml")


try:
    MAIN = validate(MainConfig, config, "config/config.yaml or --config")
    SCALE = MAIN.scale
    PLAN = Plan(CONFIG, SCALE, MAIN.seeds)
    PLAN.check()
    check_unedited(CONFIG, begins=workflow.is_main_process)
    if workflow.is_main_process:
        for problem in PLAN.registry.recipes.unusable.values():
            print(f"epcore: {problem}; its rows are left out", file=sys.stderr)
    # Of a country that nobody knows every job would fail.
    if workflow.is_main_process and PLAN.registry.footprint.tracking:
        carbon_intensity(PLAN.registry.footprint)
except UserError as error:
    sys.exit(f"epcore: {error}")


def slice_of(build, **fixed):
    """A `params` function: the part of the config that a job reads, as JSON.

    It takes wildcards alone, so that Snakemake compares it: a change re-runs the job.
    build: the method of the plan that makes it. fixed: arguments that are no wildcards.
    """
    names = signature(build).parameters

    def function(wildcards):
        arguments = {key: value.format(**wildcards) for key, value in fixed.items()}
        arguments |= {key: wildcards[key] for key in names if key not in fixed}
        numbers = {"seed", "shot"} & arguments.keys()
        return config_text(
            build(**arguments | {key: int(arguments[key]) for key in numbers})
        )

    return function


def run_of(wildcards):
    """The test that a file of scores is of."""
    return Run(
        wildcards.dataset,
        wildcards.backbone,
        wildcards.recipe,
        int(wildcards.seed),
        wildcards.protocol,
    )


# What may be asked for as tables/NAME.tex and figures/NAME.pdf; claims have a rule of their own.
TABLES = [*PLAN.tables.covered, "co2"]
FIGURES = [*PLAN.covered_figures, "co2"]


def published_figures(figures):
    return [f"figures/{name}.{end}" for name in figures for end in ("pdf", "png")]


def published_tables(tables):
    return [f"tables/{name}.tex" for name in tables]


def published_co2():
    copies = ["reports/co2.csv", "reports/co2.md"]
    return [*copies, *published_tables(["co2"]), *published_figures(["co2"])]


def contact_sheets(datasets):
    return expand(paths.CONTACT_SHEET, scale=SCALE, dataset=sorted(set(datasets)))


def published_reports():
    """Judged claims, and the CO2 report, where energy is tracked."""
    tracked = PLAN.registry.footprint.tracking
    return ["reports/claims.html", *(published_co2() if tracked else [])]


def asked_targets():
    """Those of the command line; Snakemake tells rule files of them only after it has read them."""
    return sorted(get_argument_parser().parse_known_args()[0].targets) or ["all"]


def check_targets():
    """Ends a run at once for a target that the scale does not make; says what to ask for.

    At the end of the Snakefile, when all rules are read.
    """
    if not workflow.modifier.is_main_snakefile():
        return  # the workflow that has this one as a module may make it
    tables = {*TABLES, "claims"}
    files = {name: f"figures/{name}.pdf" for name in FIGURES}
    files |= {
        name: f"tables/{name}.tex" for name in (*tables, *PLAN.registry.tables.shown)
    }
    rules = {each.name: each for each in workflow.rules if not each.has_wildcards()}
    for target in asked_targets():
        if "/" in target:
            check_file(Path(target), {"tables": tables, "figures": {*FIGURES}})
        elif target in rules:
            if rules[target].norun and not rules[target].input:
                sys.exit(
                    f"epcore: scale {SCALE} makes nothing of {target}; add --config scale=NAME of one that does"
                )
        elif not Path(target).exists():
            names = files | {name: name for name in rules}
            near = [target] if target in files else get_close_matches(target, names, 1)
            asked = (
                f"ask for {names[near[0]]}" if near else "`snakemake --list` has them"
            )
            sys.exit(f"epcore: there is no target {target}; {asked}")
        ledger = Path(paths.LEDGER.format(scale=SCALE))
        untracked = not PLAN.registry.footprint.tracking and not ledger.exists()
        if Path(target).stem == "co2" and untracked:
            sys.exit(
                f"epcore: {target} is made from {ledger}, which jobs write only if tracked; set "
                "`tracking: true` in config/footprint.yaml"
            )


def check_file(target, known):
    """Ends the run unless the scale makes this file, a result or one of a folder in `known`."""
    if target.parts[0] == "results" and SCALE not in target.parts[1:2]:
        named = [*target.parts, ""][1]
        other = named if named in PLAN.registry.scale_files else "NAME"
        sys.exit(
            f"epcore: {target} is not of scale {SCALE}; add --config scale={other}"
        )
    folder = str(target.parent)
    for near in get_close_matches(folder, known, 1, 0.8):
        if near != folder:
            sys.exit(
                f"epcore: there is no {target}; did you mean {near}/{target.name}?"
            )
    endings = {"tables": (".tex",), "figures": (".pdf", ".png")}.get(folder)
    if endings and target.stem in known[folder] and target.suffix not in endings:
        sys.exit(
            f"epcore: there is no {target}; ask for {target.with_suffix(endings[0])}"
        )
    names = known.get(folder, {target.stem})
    if target.stem not in names:
        if (CONFIG / target.parent / f"{target.stem}.yaml").exists():
            sys.exit(
                f"epcore: scale {SCALE} makes no {target}; add --config scale=NAME of one that does"
            )
        sys.exit(
            f"epcore: scale {SCALE} makes no {target}{suggest(target.stem, names)}"
        )


def candidates(checkpoint):
    """An `input` function: the checkpoints of a recipe's candidates, in their order."""
    return lambda w: [
        paths.CHECKPOINT.format(
            **{**w, "recipe": owner, "checkpoint": checkpoint.format(**w)}
        )
        for owner in PLAN.runs.candidates(w.backbone, w.recipe, phase_of(checkpoint))
    ]


def one_of(names):
    """A constraint for a wildcard; without names nothing matches."""
    return "|".join(names) or "(?!)"


def recipes_that(act, phase):
    """A constraint: the recipes that "train" in a phase, or "choose" from trained candidates."""
    recipes = PLAN.registry.recipes
    chosen = act == "choose"
    return one_of(
        r for r in recipes.names if bool(recipes.selection(r, phase)) == chosen
    )


RECIPE = "|".join(PLAN.registry.recipes.names)


# A misspelled name in a path is "no rule to produce it".
wildcard_constraints:
    scale=SCALE,
    source="|".join(PLAN.registry.sources),
    dataset="|".join(PLAN.registry.datasets),
    backbone="|".join(PLAN.registry.scale.backbones),
    recipe=RECIPE,
    protocol="|".join(PLAN.registry.protocols),
    seed="[0-9]+",
    shot="[0-9]+",
    checkpoint="pretrain|finetune-[0-9]+shot",
    table="|".join(PLAN.registry.tables.shown),
    plot=one_of(PLAN.plots.covered),
    curves=one_of(PLAN.curves.stages),


# For the first page of the report: the tables that tell the story, and what it all cost.
STORY = [
    paths.TABLE_HTML.format(scale=SCALE, table=table)
    for table in ("own", "main", "claims", "placement", "classifiers")
]
COST = Path(paths.CO2.format(scale=SCALE)).with_suffix(".md")
config["description"] = PLAN.description() | {
    "story": [*filter(os.path.isfile, STORY)],
    "cost": COST.read_text("utf-8", "replace").strip() if COST.is_file() else "",
}

# Of one training job; RESOURCES has those of other stages.
RESOURCES = PLAN.registry.scale.resources
THREADS, MEMORY, MINUTES = RESOURCES.threads, RESOURCES.mem_mb, RESOURCES.runtime
if MAIN.allow_cpu:
    REQUIRE_GPU = "--allow-cpu"
else:
    REQUIRE_GPU = "--require-gpu" if PLAN.registry.scale.requires_gpu else ""
ALLOW_CPU = REQUIRE_GPU.replace("--require-gpu", "")


# On this machine at most one job per GPU; without any, jobs are given none and compute on the CPU.
# A job on a cluster has what its profile asks for: only the main process counts its own GPUs, and
# only if nobody has (--resources gpu=N).
resource_scopes:
    gpu="local",


if workflow.is_main_process and "gpu" not in workflow.global_resources:
    workflow.register_resource("gpu", len(local_gpus()))


def each_attempt(amount):
    """A `resources` function: what is tried again gets twice as much, from then on thrice."""
    return lambda wildcards, attempt: amount * min(attempt, 3)


# The environment of every job.
# - PATH: `epcore` of the Python that runs Snakemake, even if its environment is not activated.
# - EPCORE_*: each job measures its energy and writes it into the scale's ledger. Not part of any
#   slice: a changed emission factor retrains nothing, and another data root neither.
os.environ |= {
    **ENVIRONMENT,
    "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ.get('PATH', '')}",
    "EPCORE_FOOTPRINT": PLAN.registry.footprint.model_dump_json(),
    "EPCORE_LEDGER": paths.LEDGER.format(scale=SCALE),
    "EPCORE_DATA_ROOT": MAIN.data_root,
}


onstart:
    # Settings of methods are checked by torch, whose import a dry run does not wait for.
    from epcore.commands.check_methods import check_methods

    try:
        check_methods(PLAN, PLAN.tested.recipes)
    except UserError as error:
        sys.exit(f"epcore: {error}")
    # Without it the plugin waits for ever.
    if workflow.executor_plugin.name == "slurm" and shutil.which("sbatch") is None:
        sys.exit(
            "epcore: sbatch is not on the PATH; log in to a node of the cluster that submits jobs"
        )
    # Its timer, one a second for every job that has ended, takes a core as they pile up.
    workflow.scheduler.job_rate_limiter = None
    # Snakemake's own handler waits for a lock that the interrupted thread may hold.
    signal.signal(
        signal.SIGTERM,
        lambda *_: threading.Thread(
            target=workflow.scheduler.exit_gracefully
        ).start(),
    )


def print_table():
    """The table that was asked for, at the end of what Snakemake says; of several none."""
    copied = {j.wildcards.file for j in workflow.dag.jobs if j.rule.name == "publish"}
    tables = copied & {*published_tables(PLAN.tables.covered)}
    if len(tables) == 1:
        from epcore.commands.show import show

        show(PLAN, Path(*tables).stem)


# Until then a job that fails may cost the checkpoint of another in its group.
onsuccess:
    replace_unencodable()
    discard_old_states(Path("results") / SCALE)
    print_table()
