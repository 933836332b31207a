"""Data sets: built, verified, to be downloaded or to be got by hand; and the room for them."""

import json
import shutil
from pathlib import Path

from epcore.data.fetch import find
from epcore.data.sources import Sources
from epcore.doctor.finding import Finding
from epcore.errors import UserError
from epcore.plan import Plan, paths
from epcore.plan.datasets import OfficialData

GIB = 1 << 30
# Of checkpoints, features and scores.
REST = 2 * GIB


def check_data(plan: Plan, datasets: list[str], root: Path) -> list[Finding]:
    """A finding for each data set, and one for the disk."""
    findings, lacking = [], 0
    for name in datasets:
        store = Path(paths.STORE.format(scale=plan.scale_name, dataset=name))
        if store.is_file():
            findings.append(_built(name, store))
            continue
        finding, size = _sources(plan, name, root)
        findings.append(finding)
        lacking += size
    # Archives lie beside the packed images that are made of them.
    needed = 2 * lacking + REST
    free = shutil.disk_usage(Path()).free
    said = f"{free / GIB:.0f} GiB free, about {needed / GIB:.0f} GiB needed"
    remedy = "make room, or set data_root in config/config.yaml to another disk"
    return [*findings, Finding("disk", said, remedy if free < needed else "")]


def _built(name: str, store: Path) -> Finding:
    """What the description of a built data set says."""
    try:
        classes = len(json.loads(store.read_text(encoding="utf-8"))["classes"])
    except (OSError, ValueError, KeyError, TypeError):
        remedy = "delete it and run the same command again"
        return Finding(f"data {name}", f"{store} is damaged", remedy)
    return Finding(f"data {name}", f"built, {classes} classes")


def _sources(plan: Plan, name: str, root: Path) -> tuple[Finding, int]:
    """What there is of the files of a data set that is not built, and the bytes of the others."""
    settings, what = plan.datasets[name], f"data {name}"
    if not isinstance(settings, OfficialData):
        own = getattr(settings, "path", None)
        if own is not None and not Path(own).exists():
            remedy = f"put your images there, or correct path of {name}"
            return Finding(what, f"{own} does not exist", remedy), 0
        return Finding(what, "is made when it is needed, without a download"), 0
    verified, found, size = 0, 0, 0
    download: list[str] = []
    hand: list[str] = []
    for source in settings.sources:
        receipt = Path(paths.RECEIPT.format(scale=plan.scale_name, source=source))
        for key, file in plan.sources[source].files.items():
            if _verified(receipt, source, key):
                verified += 1
            elif find(file, root) is not None:
                found += 1
            else:
                (download if file.urls else hand).append(source)
                size += file.size or 0
    said = ", ".join(
        text
        for count, text in (
            (verified, f"{verified} files verified"),
            (found, f"{found} files found, to be verified"),
            (len(download), f"{len(download)} files to download"),
            (len(hand), f"{len(hand)} files to be got by hand"),
        )
        if count
    )
    if hand:
        return Finding(what, said, f"epcore fetch {hand[0]} says the steps"), size
    if download:
        return Finding(what, f"{said}; Snakemake does it, here and not on compute nodes"), size
    return Finding(what, said), size


def _verified(receipt: Path, source: str, key: str) -> bool:
    """Whether `epcore fetch` found the file to be the published one, and it has not changed."""
    if not receipt.is_file():
        return False
    try:
        Sources.read([receipt]).path(source, key)
    except UserError:
        return False
    return True
