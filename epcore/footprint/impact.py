"""The Machine Learning Impact calculator's estimate: hours x power x factor (arXiv:1910.09700)."""

from dataclasses import dataclass


def impact(hours: float, watts: float, factor: float) -> float:
    """CO2-equivalent in kg of `hours` at `watts`, at `factor` kg per kWh."""
    return hours * watts / 1000 * factor


@dataclass(frozen=True)
class PaperImpact:
    """What the paper's appendix says of its own experiments, on Tesla V100 in Quebec."""

    hours: float = 24480
    watts: float = 250
    factor: float = 0.02
    printed: float = 146.88
    offset: float = 1000
    printed_percent: float = 685

    @property
    def computed(self) -> float:
        """What its hours, power and factor give, in kg."""
        return impact(self.hours, self.watts, self.factor)

    @property
    def watts_of_printed(self) -> float:
        """The power that its printed total needs."""
        return 1000 * self.printed / (self.hours * self.factor)

    def sentences(self) -> str:
        """Its arithmetic, checked."""
        return (
            f"The paper's {self.hours:.0f} h at {self.watts:.0f} W and {self.factor:g} kg/kWh give "
            f"{self.computed:.1f} kg by the same formula, not the printed {self.printed} kg, which "
            f"need {self.watts_of_printed:.0f} W; the {self.offset:.0f} kg that were offset are "
            f"{100 * self.offset / self.printed:.1f} % of {self.printed} kg, not the printed "
            f"{self.printed_percent:.0f} %, and {100 * self.offset / self.computed:.1f} % of "
            f"{self.computed:.1f} kg."
        )


PAPER = PaperImpact()
