"""The command `fetch`: gets the files that data sets are built from, or lists them."""

import json
from collections.abc import Iterable
from pathlib import Path

from rich.filesize import decimal as file_size

from epcore.config.datasets import DataSources
from epcore.data.datasets import OfficialData
from epcore.data.fetch import find, obtain
from epcore.errors import UserError
from epcore.files import write_text
from epcore.plan.registry import main_config, read_datasets
from epcore.settings import suggest


def run(names: list[str], settings: Path, root: Path | None, receipt: Path | None) -> None:
    """The command `fetch`; without names it prints what there is.

    `root` is the data root of config.yaml unless it is given.

    Raises:
        UserError: for an unknown name, a file that is not the published one, or one that can
            neither be found nor downloaded.
    """
    registry = read_datasets(settings)
    if root is None:
        root = Path(main_config(settings).data_root)
    if not names and receipt is None:
        print(overview(registry, root))
        return
    sources = _source_names(names, registry)
    if receipt and len(sources) != 1:
        raise UserError("--receipt: name one source, which it is the receipt of")
    failures: dict[str, UserError] = {}
    for name in sources:
        source = registry.sources[name]
        print(f"{name}: {source.title}. License: {source.license}. {source.terms}", flush=True)
        try:
            files = {key: obtain(file, source, name, root) for key, file in source.files.items()}
        except UserError as error:  # what else is missing is better known at once
            failures[name] = error
            continue
        if receipt:
            write_text(receipt, json.dumps({"source": name, "files": files}, indent=1) + "\n")
    if failures:
        first, *further = failures
        more = f" (missing as well: {', '.join(further)})" if further else ""
        raise UserError(f"{failures[first]}{more}")


def _source_names(names: Iterable[str], registry: DataSources) -> list[str]:
    """The sources that names of sources and of data sets stand for."""
    sources: list[str] = []
    for name in names:
        dataset = registry.datasets.get(name)
        if name in registry.sources:
            sources.append(name)
        elif isinstance(dataset, OfficialData):
            sources += dataset.sources
        elif dataset is not None:
            raise UserError(f"data set {name!r} is of kind {dataset.kind}: nothing to fetch")
        else:
            advice = suggest(name, [*registry.sources, *registry.datasets])
            raise UserError(f"unknown data set or source {name!r}{advice}")
    return list(dict.fromkeys(sources))


def overview(registry: DataSources, root: Path) -> str:
    """The sources: what for, on what terms, their files, and which are on this machine."""
    lines = []
    for name, source in registry.sources.items():
        users = [
            dataset
            for dataset, settings in registry.datasets.items()
            if isinstance(settings, OfficialData) and name in settings.sources
        ]
        lines += [
            f"{name}: {source.title}",
            f"    for {', '.join(users)}",
            f"    license: {source.license}. {source.terms}",
        ]
        for file in source.files.values():
            state = "to be downloaded" if file.urls else "to be got by hand"
            if (location := find(file, root)) is not None:
                state = f"found: {location}"
            size = f"{file_size(file.size)}, " if file.size else ""
            lines.append(f"    {file.path}: {size}{state}")
    return "\n".join(
        [*lines, "", "`epcore fetch NAME` gets what is missing and verifies the rest."]
    )
