"""The Machine Learning Impact calculator's estimate: hours x power x factor (arXiv:1910.09700)."""

from dataclasses import dataclass


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
        return self.hours * self.watts / 1000 * self.factor

    def sentences(self) -> str:
        """Its arithmetic, checked."""
        needed = 1000 * self.printed / (self.hours * self.factor)
        return (
            f"The paper's {self.hours:.0f} h at {self.watts:.0f} W and {self.factor:g} kg/kWh give "
            f"{self.computed:.1f} kg by the same formula, not the printed {self.printed} kg, which "
            f"need {needed:.0f} W; the {self.offset:.0f} kg that were offset are "
            f"{100 * self.offset / self.printed:.1f} % of {self.printed} kg, not the printed "
            f"{self.printed_percent:.0f} %, and {100 * self.offset / self.computed:.1f} % of "
            f"{self.computed:.1f} kg."
        )


PAPER = PaperImpact()
