"""The settings of energy, CO2 and their forecast, and the config of the stage `co2`."""

from typing import Annotated

from pydantic import Field, NonNegativeFloat, PositiveFloat, field_validator

from epcore.settings import Settings, StageConfig

LARGEST_FACTOR = 5  # kg per kWh; power from coal has about 1


class Rates(Settings):
    """Multiply-adds a second: of one core, of one GPU."""

    cpu: PositiveFloat = Field(description="of one core")
    gpu: PositiveFloat = Field(description="of one GPU")


class FootprintSettings(Settings):
    """The file footprint.yaml, which explains each key; powers in watts, factor in kg per kWh."""

    tracking: bool = Field(description="whether jobs measure their energy")
    carbon_intensity: NonNegativeFloat = Field(description="kg of CO2-equivalent per kWh")
    pue: Annotated[float, Field(ge=1)] = Field(
        description="energy of the whole computing center for each kWh of its computers"
    )
    cpu_power: PositiveFloat | None = Field(
        description="watts at full load of all processors together; null lets codecarbon find out"
    )
    ram_power: NonNegativeFloat | None = Field(
        description="watts of the memory; null lets codecarbon find out"
    )
    gpu_power: PositiveFloat | None = Field(
        description="watts of one GPU at full load, for the estimate of hours times power; null "
        "takes 300"
    )
    multiply_adds: Rates = Field(
        description="multiply-adds a second, for the forecast of a training that nothing like it "
        "was measured of"
    )

    @field_validator("carbon_intensity")
    @classmethod
    def _kilograms_not_grams(cls, factor: float) -> float:
        if factor > LARGEST_FACTOR:
            raise ValueError(
                f"expected kg per kWh, at most {LARGEST_FACTOR}; if these are grams, write "
                f"{factor / 1000:g}"
            )
        return factor


class Co2Config(StageConfig):
    """Sum up what the jobs of a scale used; `tables` and `figures` have the file of each name."""

    stage_version: int = 2
    tables: dict[str, str]
    figures: dict[str, str]
