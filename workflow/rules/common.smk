# What all rules share: the plan of the scale, names that paths may hold, the environment of jobs.
import atexit
import os
import shutil
import signal
import sys
import threading
from inspect import signature
from pathlib import Path

from epcore.errors import UserError, replace_unencodable
from epcore.files import fingerprint
from epcore.plan import Plan, paths
from epcore.plan.checks import check_unedited
from epcore.plan.registry import main_config
from epcore.plan.run import Run
from epcore.plan.runs import phase_of
from epcore.report.markup import to_text
from epcore.runtime.environment import ENVIRONMENT
from epcore.runtime.gpus import local_gpus
from epcore.runtime.resume import discard_old_states
from epcore.settings import config_text, suggest

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
    MAIN = main_config(CONFIG, config)
    SCALE = MAIN.scale
    PLAN = Plan(CONFIG, SCALE, MAIN.seeds)
    PLAN.check()
    check_unedited(CONFIG, begins=workflow.is_main_process)
    if workflow.is_main_process:
        for problem in PLAN.registry.recipes.unusable.values():
            print(f"epcore: {problem}; its rows are left out", file=sys.stderr)
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


ENERGY = paths.ENERGY.format(scale=SCALE)
# What may be asked for as tables/NAME.tex and figures/NAME.pdf; the report on CO2 where energy is,
# or was, tracked.
TRACKING = PLAN.registry.footprint.tracking
CO2_REPORT = ["co2"] if TRACKING or os.path.exists(ENERGY) else []
TABLES = [*PLAN.tables.covered, "claims", *CO2_REPORT]
FIGURES = [*PLAN.covered_figures, *CO2_REPORT]
PUBLISHED_CO2 = ["reports/co2.csv", "reports/co2.md"]


def published_figures(figures):
    return [f"figures/{name}.{end}" for name in figures for end in ("pdf", "png")]


def published_tables(tables):
    return [f"tables/{name}.tex" for name in tables]


def contact_sheets(datasets):
    return expand(paths.CONTACT_SHEET, scale=SCALE, dataset=sorted(set(datasets)))


def published_reports():
    """Judged claims, and the CO2 report, where energy is tracked."""
    if not TRACKING:
        return published_tables(["claims"])
    co2 = [*PUBLISHED_CO2, *published_figures(["co2"])]
    return [*co2, *published_tables(["claims", "co2"])]


# A table or figure that the scale does not make is told at once; a workflow that has this one as a
# module may make it.
if workflow.is_main_process and workflow.modifier.is_main_snakefile():
    for target in map(Path, sys.argv[1:]):
        names = {"tables": TABLES, "figures": FIGURES}.get(str(target.parent))
        if names and target.stem not in names:
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


RECIPE = one_of(PLAN.registry.recipes.names)


# A misspelled name in a path is "no rule to produce it".
wildcard_constraints:
    scale=SCALE,
    source=one_of(PLAN.registry.sources),
    dataset=one_of(PLAN.registry.datasets),
    backbone=one_of(PLAN.registry.scale.backbones),
    recipe=RECIPE,
    protocol=one_of(PLAN.registry.protocols),
    seed="[0-9]+",
    shot="[0-9]+",
    checkpoint="pretrain|finetune-[0-9]+shot",
    table=one_of(PLAN.tables.shown),


# For the first page of the report: the tables that tell the story, and what it all cost.
STORY = [
    paths.TABLE_HTML.format(scale=SCALE, table=table)
    for table in ("own", "main", "claims", "placement", "classifiers")
]
COST = Path(paths.CO2.format(scale=SCALE)).with_suffix(".md")
config["description"] = PLAN.facts() | {
    "story": [*filter(os.path.isfile, STORY)],
    "cost": COST.read_text("utf-8", "replace").strip() if COST.is_file() else "",
}

# Of one training job; RESOURCES has those of other stages.
RESOURCES = PLAN.registry.scale.resources
THREADS, MEMORY, MINUTES = RESOURCES.threads, RESOURCES.mem_mb, RESOURCES.runtime
ALLOW_CPU = "--allow-cpu" if MAIN.allow_cpu else ""
REQUIRE_GPU = ALLOW_CPU or ("--require-gpu" if PLAN.registry.scale.requires_gpu else "")


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
# - EPCORE_*: each job measures its energy and writes it below the scale's energy folder. Not part
#   of any slice: a changed emission factor retrains nothing, and another data root neither.
os.environ |= {
    **ENVIRONMENT,
    "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ.get('PATH', '')}",
    "EPCORE_FOOTPRINT": PLAN.registry.footprint.model_dump_json(),
    "EPCORE_ENERGY": ENERGY,
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
    """The table that was asked for; of several none."""
    copied = {j.wildcards.file for j in workflow.dag.jobs if j.rule.name == "publish"}
    tables = copied & {*published_tables(PLAN.tables.covered)}
    if len(tables) == 1:
        from epcore.commands.show import show

        show(PLAN, Path(*tables).stem)


# Until then a job that fails may cost the checkpoint of another in its group.
onsuccess:
    replace_unencodable()
    discard_old_states(Path("results") / SCALE)
    # Once Snakemake no longer draws its progress over it.
    atexit.register(print_table)
