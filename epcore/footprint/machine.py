"""What is known of the machine that a job runs on: its powers, and what its kWh weighs.

codecarbon takes about a second of processor time to find out, so the first job on a machine writes
it down beside the ledger for all others.
"""

import contextlib
import os
import platform
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from pydantic import NonNegativeFloat, PositiveInt, ValidationError

from epcore.errors import UserError
from epcore.files import canonical_json, locked
from epcore.footprint.config import FootprintSettings
from epcore.settings import Settings


class Machine(Settings):
    """A machine under some settings; powers in watts at full load, factor in kg per kWh.

    settings: those that it was found out for. cpu_power: of all `cpus` together. Whether it counts
    its energy is not here, as a later job may not be let read the counters.
    """

    settings: FootprintSettings
    cpus: PositiveInt
    cpu_power: NonNegativeFloat
    ram_power: NonNegativeFloat
    factor: NonNegativeFloat

    @property
    def watts_per_core(self) -> float:
        """Watts of one busy core, with its part of the memory."""
        return (self.cpu_power + self.ram_power) / self.cpus


def known_machine(settings: FootprintSettings, folder: Path) -> Machine:
    """The machine, out of `folder` if it was found out before.

    Where the folder cannot be written, it is found out anew.

    Raises:
        UserError: if the country or the region is unknown, or codecarbon fails.
    """
    machine = None
    try:
        with locked(folder / f"{platform.node() or 'machine'}.json") as descriptor:
            machine = _saved(descriptor, settings)
            if machine is None:
                machine = find_out(settings)
                os.ftruncate(descriptor, 0)
                os.write(descriptor, canonical_json(machine.model_dump(mode="json")).encode())
    except OSError as error:  # a full disk; the job itself may not need it
        problem = f"{error.filename}: {error.strerror}; what is known of this machine is not saved"
        print(f"epcore: {problem}", file=sys.stderr)
    return machine or find_out(settings)


def _saved(descriptor: int, settings: FootprintSettings) -> Machine | None:
    """The machine in a file, if it is whole and was found out for these settings."""
    text = os.pread(descriptor, os.fstat(descriptor).st_size, 0)
    try:
        machine = Machine.model_validate_json(text)
    except ValidationError:
        return None
    return machine if machine.settings == settings else None


def find_out(settings: FootprintSettings) -> Machine:
    """The machine as the settings and, where they say nothing, codecarbon know it."""
    factor = carbon_intensity(settings)
    try:
        from codecarbon.external.logger import logger
        from codecarbon.external.ram import RAM

        logger.setLevel("CRITICAL")
        ram = settings.ram_power
        return Machine(
            settings=settings,
            cpus=os.cpu_count() or 1,
            cpu_power=settings.cpu_power or _processors_power(),
            ram_power=RAM().total_power().W if ram is None else ram,
            factor=factor,
        )
    except Exception as error:  # whatever it finds on a machine that it does not know
        raise UserError(
            f"codecarbon could not find out this machine's power ({error!r}); give cpu_power and "
            "ram_power in config/footprint.yaml, or switch `tracking` off there"
        ) from None


def _processors_power() -> float:
    """Watts of all processors together, by codecarbon's table."""
    from codecarbon.core.cpu import TDP
    from codecarbon.core.util import count_physical_cpus

    tdp: Any = TDP()  # type: ignore[no-untyped-call]
    sockets: int = count_physical_cpus()  # type: ignore[no-untyped-call]
    return float(tdp.tdp) * sockets


@contextlib.contextmanager
def outside_slurm() -> Iterator[None]:
    """Hides a SLURM job from codecarbon, which looks for one when it is imported.

    It would take the memory of the job for that of the machine, and ask the controller of the
    cluster each time.
    """
    names = ("SLURM_JOB_ID", "SLURM_JOBID")
    hidden = {name: os.environ.pop(name) for name in names if name in os.environ}
    try:
        yield
    finally:
        os.environ.update(hidden)


def carbon_intensity(settings: FootprintSettings) -> float:
    """Factor in kg of CO2-equivalent per kWh: the settings' own, else codecarbon's for the place.

    codecarbon itself falls back to the country for an unknown region and to the world's mean for
    an unknown country.

    Raises:
        UserError: for a country or a region that codecarbon has no factor of.
    """
    if settings.carbon_intensity is not None:
        return settings.carbon_intensity
    from codecarbon.core.emissions import Emissions
    from codecarbon.core.units import Energy
    from codecarbon.external.geography import GeoMetadata
    from codecarbon.external.logger import logger
    from codecarbon.input import DataSource

    logger.setLevel("CRITICAL")
    source: Any = DataSource()  # type: ignore[no-untyped-call]
    country = str(settings.country)
    if country not in source.get_global_energy_mix_data():
        raise UserError(
            f"config/footprint.yaml: codecarbon has no factor of country {country!r}; give its "
            "three letters as in ISO 3166, or carbon_intensity"
        )
    emissions, one_kwh = Emissions(source), Energy.from_energy(1)
    place = GeoMetadata(country_iso_code=country, region=settings.region)
    if settings.region is None:
        return float(emissions.get_country_emissions(one_kwh, place))
    if settings.region not in _regions(source, country):
        regions = ", ".join(_regions(source, country))
        raise UserError(
            f"config/footprint.yaml: codecarbon has no factor of region {settings.region!r} of "
            f"{country}; use one of: {regions}; or null, or carbon_intensity"
        )
    return float(emissions.get_region_emissions(one_kwh, place))


def factor_source(settings: FootprintSettings) -> str:
    """The source of the factor that `carbon_intensity` returns."""
    if settings.carbon_intensity is not None:
        return "set in config/footprint.yaml"
    place = ", ".join(name for name in (settings.region, settings.country) if name)
    return f"codecarbon's for {place}"


def _regions(source: Any, country: str) -> list[str]:
    """The regions of a country as codecarbon spells them."""
    if country == "USA":
        names = list(source.get_country_emissions_data("usa"))
    elif country == "CAN":
        names = list(source.get_country_energy_mix_data("can"))
    elif country == "CHN":
        provinces = source.get_china_provincial_emissions_data()["data"].values()
        names = [name for province in provinces for name in province["names"]]
    else:
        prefix = {"SWE": "SE", "NOR": "NO", "FIN": "FI"}[country]
        zones = source.get_nordic_country_energy_mix_data()["data"]
        names = [zone for zone in zones if zone.startswith(prefix)]
    return sorted(name for name in names if not name.startswith("_"))
