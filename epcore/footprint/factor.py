"""What a kilowatt-hour weighs: the settings' own factor, or codecarbon's of the place."""

from typing import Any

from epcore.errors import UserError
from epcore.footprint.config import FootprintSettings


def carbon_intensity(settings: FootprintSettings) -> float:
    """Factor in kg of CO2-equivalent per kWh.

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
            f"config/footprint.yaml: codecarbon has no factor of country {country!r}",
            "give its three letters as in ISO 3166, or carbon_intensity",
        )
    emissions, one_kwh = Emissions(source), Energy.from_energy(1)
    place = GeoMetadata(country_iso_code=country, region=settings.region)
    if settings.region is None:
        return float(emissions.get_country_emissions(one_kwh, place))
    if settings.region not in _regions(source, country):
        regions = ", ".join(_regions(source, country))
        raise UserError(
            f"config/footprint.yaml: codecarbon has no factor of region {settings.region!r} "
            f"of {country}",
            f"use one of: {regions}; or null, or carbon_intensity",
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
