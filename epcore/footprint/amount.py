"""Amounts of work, in units that do not depend on the machine."""

from dataclasses import astuple, dataclass

TRAINING = 3  # forward passes that a forward and a backward pass cost
RESUME = 12  # bytes of each weight in a resume file: the weight, its momentum and its best value


@dataclass(frozen=True)
class Work:
    """Work of a job.

    multiply_adds, values: of all forward passes; see `epcore.plan.network`. pairs, cubes: n^2 and
    n^3, summed over the episodes that are solved, of n images each. images: that are drawn or
    decoded. rows: stored features that are drawn and read. download, disk: bytes. resume:
    bytes of what a training goes on from, until its checkpoint was used.
    """

    multiply_adds: float = 0
    values: float = 0
    pairs: float = 0
    cubes: float = 0
    images: float = 0
    rows: float = 0
    download: float = 0
    disk: float = 0
    resume: float = 0

    def __add__(self, other: "Work") -> "Work":
        return Work(*(one + two for one, two in zip(astuple(self), astuple(other), strict=True)))

    def __mul__(self, times: float) -> "Work":
        return Work(*(times * amount for amount in astuple(self)))


def solving(episodes: list[tuple[float, int]]) -> Work:
    """Episodes `(count, images in each)` that are solved."""
    return Work(
        pairs=sum(count * images**2 for count, images in episodes),
        cubes=sum(count * float(images) ** 3 for count, images in episodes),
    )
