"""Which characters are the classes of the built-in data sets: the lists of glyph_classes.csv.

They were drawn at random from the letters, digits and symbols that at least 12 of 16 typefaces
have, and that look like no other: homoglyphs (Latin A, Greek Alpha, Cyrillic A) are one picture.
Each pair differs in three faces of DejaVu by a Dice distance of blurred ink of 0.08 in `mini` and
`tiered`, 0.055 in `large`, and 0.005 in `fine`, where accents make the classes.
"""

import csv
import unicodedata
from pathlib import Path

from epcore.data.contents import ImageClass

FILE = Path(__file__).with_suffix(".csv")


def select_classes(selection: str) -> dict[str, ImageClass]:
    """The classes of a built-in data set, by the character that all images of a class show.

    - `mini` (64 base, 16 val, 20 novel) and `large` (389, 300, 311): letters, digits and symbols
      of all scripts; the groups of `large` are the subsets of ImageNet-FS, by the names of its
      published file.
    - `tiered` (90, 25, 35): Unicode blocks are super-classes, each wholly in one split.
    - `fine` (100, 50, 50): ten members of each of twenty families, a Latin letter with and
      without diacritics. Each family is wholly in one split.
    """
    with FILE.open(encoding="utf-8", newline="") as file:
        return {
            character: ImageClass(_name(character), row["split"], row["group"])  # type: ignore[arg-type]
            for row in csv.DictReader(file)
            if row["selection"] == selection
            for character in row["characters"]
        }


def _name(character: str) -> str:
    return f"u+{ord(character):04x} {unicodedata.name(character).lower()}"
