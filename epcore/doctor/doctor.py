"""The command `doctor`."""

import re
from pathlib import Path

from epcore.doctor.cluster import check_profile
from epcore.doctor.data import check_data
from epcore.doctor.environment import LOCK, check_gpus, check_packages
from epcore.errors import UserError
from epcore.plan import Plan, paths
from epcore.plan.load import pick

WHOLE = ("all", "ablation_pipeline", "data_pictures")


def run(targets: list[str], settings: Path, scale: str, root: Path, profile: Path | None) -> None:
    """Prints what there is and what is missing.

    Raises:
        UserError: if anything is missing, or a target is unknown.
    """
    plan = Plan(settings, scale)
    datasets = datasets_of(plan, targets)
    findings = [
        *check_packages(settings.parent / LOCK),
        *check_gpus(plan.scale.requires_gpu, profile is not None),
        *(check_profile(profile) if profile else []),
        *check_data(plan, datasets, root),
    ]
    print(f"For {' '.join(targets)} at scale {scale}:")
    print("\n".join(map(str, findings)))
    missing = sum(bool(finding.remedy) for finding in findings)
    if missing:
        raise UserError(f"{missing} of {len(findings)} checks ask for something, see above")


def datasets_of(plan: Plan, targets: list[str]) -> list[str]:
    """The data sets that targets of the workflow are made from.

    Raises:
        UserError: for a target that is no table, figure or file of the results.
    """
    found: dict[str, None] = {}
    for target in targets:
        if table := re.fullmatch(r"(?:results/[^/]+/)?tables/([^/]+)\.(?:tex|csv)", target):
            plan.table(table[1])
            found |= dict.fromkeys(_of_scores(cell.scores) for cell in plan.cells(table[1]))
        elif target in WHOLE or re.fullmatch(r"(?:results/[^/]+/)?(figures|reports)/.+", target):
            found |= dict.fromkeys(plan.scale.columns.values())
        elif file := re.match(
            r"results/[^/]+/(?:data|episodes|models|features|scores)/([^/]+)/", target
        ):
            pick(plan.datasets, file[1], "data set", target)
            found[file[1]] = None
        else:
            raise UserError(
                f"target {target!r}: expected {', '.join(WHOLE)}, tables/NAME.tex, "
                "figures/NAME.pdf or a file below results/"
            )
    return list(found)


def _of_scores(path: str) -> str:
    """The data set that the path of a file of scores names."""
    return Path(path).parts[Path(paths.SCORES).parts.index("{dataset}")]
