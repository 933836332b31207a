"""What captions and notes of a scale's tables and figures say besides their numbers."""

from epcore.config.scale import Scale


def caption_of(scale: Scale, title: str, *parts: str, own: bool = False) -> str:
    """The sentences of a caption, with what the scale says of itself; empty parts are left out.

    own: whether the data stand for themselves, and not for the paper's.
    """
    stand_in = "*This run uses stand-in data: its numbers are not comparable with the paper's*"
    sentences = [title, "" if scale.comparable or own else stand_in, scale.note, *parts]
    return " ".join(part.rstrip(".") + "." for part in sentences if part)


def this_run(measured: str, interval: str, seeds: tuple[int, ...]) -> str:
    """What a caption says of the numbers of this run; `interval` is that of one training."""
    if len(seeds) == 1:
        return (
            f"*This run*: {measured}, {interval}, of one training each; the interval does not "
            "cover differences between trainings."
        )
    return (
        f"*This run*: {measured} and {len(seeds)} trainings (seeds "
        f"{', '.join(map(str, seeds))}), with its 95\N{THIN SPACE}% interval over trainings. °No "
        "difference beyond that of trainings: its 95\N{THIN SPACE}% interval, paired by seed, "
        "holds zero."
    )
