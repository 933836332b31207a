"""Python, packages, GPUs, and what a kilowatt-hour weighs here."""

import re
import sys
from importlib import metadata
from pathlib import Path

from epcore.commands.doctor.finding import Finding
from epcore.errors import UserError
from epcore.footprint.config import FootprintSettings
from epcore.footprint.factor import carbon_intensity, factor_source
from epcore.runtime.gpus import local_gpus

LOCK = "requirements.txt"
WITH_CUDA = (
    "install the locked version of torch for your driver's CUDA, as pytorch.org says: "
    "pip install --force-reinstall --no-deps torch==... --index-url ..."
)


def check_packages(lock: Path) -> list[Finding]:
    """Python, and the packages that the lock names."""
    version = sys.version.split()[0]
    old = "install Python 3.11 or newer" if sys.version_info < (3, 11) else ""
    findings = [Finding("python", f"{version}, {sys.executable}", old)]
    if not lock.is_file():
        remedy = "run epcore doctor in the folder of the checkout"
        return [*findings, Finding("packages", f"there is no {lock.name} here", remedy)]
    locked = dict(re.findall(r"^([\w.-]+)==([\w.]+)", lock.read_text(encoding="utf-8"), re.M))
    missing = [name for name in locked if installed(name) is None]
    deviating = [
        f"{name} {actual} for {version}"
        for name, version in locked.items()
        if (actual := installed(name)) not in (None, version)
    ]
    if missing or deviating:
        text = "; ".join(
            part
            for part in (
                f"missing: {', '.join(missing)}" if missing else "",
                f"not the locked version: {', '.join(deviating)}" if deviating else "",
            )
            if part
        )
        return [*findings, Finding("packages", text, f"pip install -r {lock.name}")]
    return [*findings, Finding("packages", f"all {len(locked)} as {lock.name} has them")]


def installed(package: str) -> str | None:
    """The version, less the +cpu or +cu130 of a build."""
    try:
        return metadata.version(package).split("+")[0]
    except metadata.PackageNotFoundError:
        return None


def check_gpus(required: bool, cluster: bool) -> list[Finding]:
    """GPUs of this machine; a cluster's are on its nodes, which have the same torch."""
    gpus = local_gpus()
    if not gpus and cluster:
        import torch

        text = "none here: the cluster's nodes have them"
        if required and torch.version.cuda is None:
            return [
                Finding(
                    "gpus",
                    f"{text}, but torch {torch.__version__} is built without CUDA",
                    WITH_CUDA,
                )
            ]
        return [Finding("gpus", text)]
    if not gpus:
        remedy = (
            "a machine with a GPU, --profile workflow/profiles/slurm, or --config allow_cpu=true"
        )
        text = "none, trainings run on the CPU"
        return [Finding("gpus", text, remedy if required else "")]
    import torch

    seen = torch.cuda.device_count()
    text = f"{len(gpus)}, torch {torch.__version__} sees {seen}"
    if seen == len(gpus):
        return [Finding("gpus", f"{text}: at most one training on each at a time")]
    built = torch.version.cuda
    remedy = f"update the NVIDIA driver: this torch needs CUDA {built}" if built else WITH_CUDA
    return [Finding("gpus", text, remedy)]


def check_factor(settings: FootprintSettings) -> list[Finding]:
    """Checks the emission factor if energy is tracked and codecarbon is installed."""
    if not settings.tracking or installed("codecarbon") is None:
        return []
    try:
        factor = carbon_intensity(settings)
    except UserError as error:
        text, _, remedy = str(error).partition("; ")
        return [Finding("CO2 of a kWh", text, remedy)]
    return [Finding("CO2 of a kWh", f"{factor:g} kg, {factor_source(settings)}")]
