"""Where the files of sources lie on this machine, once `epcore fetch` has verified them.

A receipt is a JSON file that `epcore fetch` writes for a source: for each file its path, size,
time of change and checksum. Builders open no file of a source but through its receipt.
"""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any, get_args

from epcore.data.config import Split
from epcore.errors import UserError
from epcore.files import check_exists


@dataclass(frozen=True)
class Sources:
    """The receipts of the sources that a data set reads."""

    receipts: dict[str, dict[str, Any]]

    @classmethod
    def read(cls, paths: list[Path]) -> "Sources":
        """Raises `UserError` if a receipt is missing."""
        receipts = {}
        for path in paths:
            check_exists(path, "receipt", "run `epcore fetch` with --receipt first")
            receipt = json.loads(path.read_text(encoding="utf-8"))
            receipts[receipt["source"]] = receipt["files"]
        return cls(receipts)

    def path(self, source: str, key: str) -> Path:
        """The verified file, or the unpacked folder in its place.

        Raises:
            UserError: if there is none, or it changed since.
        """
        try:
            entry = self.receipts[source][key]
        except KeyError:
            raise UserError(f"no receipt names {key!r} of the source {source!r}") from None
        path = Path(entry["path"])
        is_file = "size" in entry
        if not path.exists() or (is_file and not stamp(path).items() <= entry.items()):
            raise UserError(
                f"{path} is not the file that was verified: it moved or changed since",
                f"delete the receipt of {source} and run `epcore fetch {source}` with "
                "--receipt again",
            )
        return path

    def lists(self, source: str) -> dict[Split, Path]:
        """The list of each split, which keys the source's files: upstream train, val and test."""
        return {split: self.path(source, split) for split in get_args(Split)}

    def checksums(self) -> dict[str, Any]:
        """What store.json keeps: each file's name and checksum."""
        return {
            source: {
                Path(entry["path"]).name: {
                    key: entry[key] for key in ("sha256", "md5", "checksum") if key in entry
                }
                for entry in files.values()
            }
            for source, files in self.receipts.items()
        }


def stamp(path: Path) -> dict[str, int]:
    """What tells a changed file without reading it."""
    status = path.stat()
    return {"size": status.st_size, "changed_ns": status.st_mtime_ns}
