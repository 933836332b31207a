# What all rules share: the plan of each scale, names that paths may hold, the environment of jobs.
import shlex
import sys
from functools import lru_cache
from pathlib import Path

from snakemake.exceptions import WorkflowError

from epcore.errors import UserError
from epcore.plan import Plan, paths

CONFIG = Path(workflow.basedir) / "config"
SCALE = str(config.get("scale"))


@lru_cache
def plan(scale):
    return Plan(CONFIG, scale)


def told(method, *names):
    """A `params` function: what the plan tells a stage about the rule's wildcards."""

    def function(wildcards):
        arguments = [getattr(wildcards, name) for name in names]
        arguments = [
            int(a) if n in ("seed", "shot") else a for n, a in zip(names, arguments)
        ]
        try:
            return getattr(plan(wildcards.scale), method)(*arguments)
        except UserError as error:
            raise WorkflowError(str(error)) from None

    return function


def training(name):
    """A `resources` or `threads` function: what one training job needs at its scale."""
    return lambda wildcards: getattr(plan(wildcards.scale).scale.resources, name)


def episodes_of_shot(wildcards):
    """All episodes that are tested with the checkpoint of this shot."""
    protocols = plan(wildcards.scale).test_protocols(int(wildcards.shot))
    return expand(
        paths.EPISODES,
        scale=wildcards.scale,
        dataset=wildcards.dataset,
        protocol=protocols,
    )


def features_for_protocol(wildcards):
    shot = plan(wildcards.scale).protocols[wildcards.protocol].shot
    return paths.FEATURES.replace("{shot}", str(shot))


# A mistake in the config ends here, in one line.
try:
    for unknown in set(config) - {"scale", "allow_cpu"}:
        raise UserError(
            f"config/config.yaml or --config: unknown key {unknown!r}; known: scale, allow_cpu"
        )
    TABLES = [path.stem for path in sorted((CONFIG / "tables").glob("*.yaml"))]
    for table in TABLES:
        plan(SCALE).latex(table)
        for recipe in plan(SCALE).recipes:
            for backbone in plan(SCALE).scale.backbones:
                plan(SCALE).recipe(recipe, backbone)
except UserError as error:
    raise WorkflowError(str(error)) from None


wildcard_constraints:
    scale=paths.NAME,
    dataset=paths.NAME,
    backbone="|".join(plan(SCALE).backbones),
    recipe="|".join(plan(SCALE).recipes),
    protocol="|".join(plan(SCALE).protocols),
    seed="[0-9]+",
    shot="[0-9]+",
    table="|".join(TABLES),


ALLOW_CPU = "--allow-cpu" if str(config.get("allow_cpu")).lower() == "true" else ""

# The environment of every job, in this one place. Snakemake sets OMP_NUM_THREADS to `threads`.
# - PATH: `epcore` of the Python that runs Snakemake, even if its environment is not activated.
# - OMP_WAIT_POLICY: threads that wait sleep; spinning ones starve the jobs beside them.
# - MALLOC_*: glibc keeps large blocks instead of returning them to the kernel after every layer.
shell.prefix(
    "set -euo pipefail; "
    f'export PATH={shlex.quote(str(Path(sys.executable).parent))}:"$PATH" '
    "OMP_WAIT_POLICY=PASSIVE MALLOC_MMAP_THRESHOLD_=4294967296 "
    "MALLOC_TRIM_THRESHOLD_=8589934592 MALLOC_TOP_PAD_=268435456; "
)
