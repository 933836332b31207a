"""What a check says."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Finding:
    """The result of a check in one line, with a remedy if something is missing."""

    what: str
    text: str
    remedy: str = ""

    def __str__(self) -> str:
        mark = "!!" if self.remedy else "ok"
        line = f"{mark}  {self.what + ':':<13} {self.text}"
        return f"{line}\n{'':18}-> {self.remedy}" if self.remedy else line
