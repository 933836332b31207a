"""Tables in a terminal."""

from rich.console import Console
from rich.measure import Measurement
from rich.table import Table

WIDEST = 1000  # characters


def width_of(table: Table) -> int:
    """The width in characters that a table needs."""
    console = Console(markup=False)
    return Measurement.get(console, console.options.update(width=WIDEST), table).maximum


def print_table(table: Table) -> None:
    """Prints a table as wide as it is; a terminal breaks its lines, a file does not."""
    Console(width=width_of(table), highlight=False, markup=False).print(table)
