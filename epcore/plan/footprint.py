"""The settings of energy, CO2 and their forecast: the file footprint.yaml."""

from pathlib import Path
from typing import Annotated, Self

from pydantic import Field, NonNegativeFloat, PositiveFloat, field_validator, model_validator

from epcore.plan.load import read_yaml, validate
from epcore.plan.settings import Settings

# Countries whose regions have factors of their own in codecarbon.
WITH_REGIONS = ("CAN", "USA", "CHN", "SWE", "NOR", "FIN")
LARGEST_FACTOR = 5  # kg per kWh; power from coal has about 1


class Rates(Settings):
    """Multiply-adds a second: of one core, of one GPU."""

    cpu: PositiveFloat
    gpu: PositiveFloat


class FootprintSettings(Settings):
    """The file footprint.yaml, which explains each key; powers in watts, factor in kg per kWh."""

    tracking: bool
    carbon_intensity: NonNegativeFloat | None
    country: Annotated[str, Field(pattern="^[A-Z]{3}$")] | None
    region: str | None
    pue: Annotated[float, Field(ge=1)]
    cpu_power: PositiveFloat | None
    ram_power: NonNegativeFloat | None
    gpu_power: PositiveFloat | None
    multiply_adds: Rates

    @field_validator("carbon_intensity")
    @classmethod
    def _kilograms_not_grams(cls, factor: float | None) -> float | None:
        if factor is not None and factor > LARGEST_FACTOR:
            raise ValueError(
                f"expected kg per kWh, at most {LARGEST_FACTOR}; if these are grams, write "
                f"{factor / 1000:g}"
            )
        return factor

    @model_validator(mode="after")
    def _a_factor_can_be_found(self) -> Self:
        if self.carbon_intensity is None and self.country is None:
            raise ValueError("give carbon_intensity (kg per kWh) or country (three letters)")
        if self.region is not None and self.country not in WITH_REGIONS:
            known = ", ".join(WITH_REGIONS)
            raise ValueError(f"only {known} have factors of regions; set region to null")
        return self


def read_footprint(config: Path) -> FootprintSettings:
    """The file footprint.yaml of the folder `config`.

    Raises:
        UserError: that names the key and the remedy.
    """
    return read_footprint_file(config / "footprint.yaml")


def read_footprint_file(path: Path) -> FootprintSettings:
    """As `read_footprint`, of a file."""
    return validate(FootprintSettings, read_yaml(path), "/".join(path.parts[-2:]))
