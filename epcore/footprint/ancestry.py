"""Which jobs a file is made of, by the meta files of a scale's results."""

import contextlib
import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from epcore.files import meta_of
from epcore.footprint.ledger import Entry


class Ancestry:
    """The meta files below `results`, and the jobs of a ledger.

    A meta file names the files that were made, those that they were made from, and the attempt at
    the job that made them. A store names its sources instead.
    """

    def __init__(self, results: Path, entries: Iterable[Entry]) -> None:
        self._results = results
        self._jobs = {entry.attempt: entry.job for entry in entries}
        self._files = set(self._jobs.values())
        self._metas: dict[str, dict[str, Any]] = {}
        for path in sorted(results.rglob("*.meta.json")):
            # Torn or foreign: who reads its files will say so.
            with contextlib.suppress(ValueError, KeyError, TypeError):
                meta = json.loads(path.read_text(encoding="utf-8"))
                for name in (path.name, *meta["made"]):
                    self._metas[(path.parent / name).as_posix()] = meta

    def jobs_below(self, file: str) -> list[str]:
        """The jobs of the ledger that made a file and, all the way down, what it is made from."""
        jobs: dict[str, None] = {}
        seen: set[str] = set()
        pending = [str(meta_of(Path(file))), file]
        while pending:
            if (path := pending.pop()) not in seen:
                seen.add(path)
                meta = self._metas.get(path, {})
                job = self._jobs.get(meta.get("energy", {}).get("attempt", ""), path)
                if job in self._files:
                    jobs[job] = None
                pending += meta.get("inputs", self._sources(path))
        return list(jobs)

    def _sources(self, path: str) -> list[str]:
        """The receipts that a store was built from; of other files nothing."""
        if Path(path).name != "store.json":
            return []
        with contextlib.suppress(OSError, ValueError, LookupError):
            origin = json.loads(Path(path).read_text(encoding="utf-8"))["provenance"]
            receipts = self._results / "sources"
            return [(receipts / f"{name}.json").as_posix() for name in origin["sources"]]
        return []
