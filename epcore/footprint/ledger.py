"""The ledger: an append-only file of what every attempt at a job used, failed ones included.

One JSON object a line. An attempt writes a line when it starts, cumulative ones while it runs, at
intervals that double up to two minutes, and one at its end: its last line counts. So an attempt
that was killed counts with what it had used by its last line, which is at least half of it or all
but two minutes (of its first two seconds nothing).
"""

import json
import os
from collections.abc import Sequence
from itertools import takewhile
from pathlib import Path
from typing import Annotated, Literal

from pydantic import ConfigDict, Field, NonNegativeFloat, ValidationError

from epcore.errors import UserError
from epcore.files import canonical_json, locked
from epcore.settings import Settings

State = Literal["started", "running", "finished", "failed", "interrupted"]


class Entry(Settings):
    """One line: an attempt's use of energy so far. Energies in kWh, with the PUE.

    attempt: its unique name. job: the file that it makes. at: time of the line, UTC. seconds: by
    the clock; cpu_seconds: of its processors, children included. `measured_kwh` is the part of
    `kwh` that comes from power counters, the rest is estimated as `method` says. tdp_kwh: hours
    times the hardware's power at full load, as the Machine Learning Impact calculator has it,
    without PUE. kg: kg of CO2-equivalent, `kwh` times `factor` (kg/kWh). device: `cpu` or the GPU.
    pue, factor_source: that the line was computed with.
    """

    # Lines of a later version may say more.
    model_config = ConfigDict(extra="ignore", frozen=True)

    attempt: str
    job: str
    stage: str
    state: State
    at: str
    host: str
    device: str
    seconds: NonNegativeFloat
    cpu_seconds: NonNegativeFloat
    kwh: NonNegativeFloat
    measured_kwh: NonNegativeFloat
    tdp_kwh: NonNegativeFloat
    kg: NonNegativeFloat
    factor: NonNegativeFloat
    method: str
    pue: Annotated[float, Field(ge=1)]
    factor_source: str


def append(path: Path, entry: Entry) -> None:
    """Adds a line, whole, whatever other processes write.

    A line that a writer left torn (a full disk, a crash of the machine) is ended first, so that it
    spoils nothing but itself.
    """
    line = (canonical_json(entry.model_dump(mode="json")) + "\n").encode()
    with locked(path) as descriptor:
        size = os.fstat(descriptor).st_size
        if size and os.pread(descriptor, 1, size - 1) != b"\n":
            line = b"\n" + line
        while line:
            line = line[os.write(descriptor, line) :]


def read(path: Path) -> list[Entry]:
    """The last line of every attempt, in the order in which they started.

    Torn lines, and those with a number that no job can have used, are passed over.

    Raises:
        UserError: if there is no ledger.
    """
    try:
        lines = path.read_bytes().splitlines()
    except OSError as error:
        raise UserError(
            f"ledger {path} cannot be read ({error.strerror}); jobs write it while config/"
            "footprint.yaml has `tracking: true`: run one first, for example "
            "snakemake --cores 2 tables/main.tex"
        ) from None
    entries = filter(None, map(_parsed, lines))
    return list({entry.attempt: entry for entry in entries}.values())


def gone_on_from(attempt: str, entries: Sequence[Entry]) -> list[Entry]:
    """The attempts at the same job whose saved state an attempt went on from, last one first.

    Those before it that did not finish. One right before it that did finish counts too, with those
    before that one: its file was lost, and made again from the last state. The ledger does not say
    whether settings were edited in between, so attempts with others count too.
    """
    started = [entry.attempt for entry in entries]
    if attempt not in started:
        return []
    place = started.index(attempt)
    before = [entry for entry in entries[:place] if entry.job == entries[place].job][::-1]
    return before[:1] + list(takewhile(lambda entry: entry.state != "finished", before[1:]))


def _parsed(line: bytes) -> Entry | None:
    try:
        return Entry.model_validate(json.loads(line))
    except (ValueError, ValidationError):
        return None
