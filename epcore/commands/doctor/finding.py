"""What a check says."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Finding:
    """One line: what was looked at and found; with a remedy if something is missing."""

    what: str
    said: str
    remedy: str = ""

    def __str__(self) -> str:
        mark = "!!" if self.remedy else "ok"
        line = f"{mark}  {self.what + ':':<13} {self.said}"
        return f"{line}\n{'':18}-> {self.remedy}" if self.remedy else line
