"""Images that a data set holds twice."""

import hashlib
from typing import Any

import numpy as np

from epcore.data.contents import Contents

EXAMPLES = 10


class Repeats:
    """Remembers a digest of every image, 16 bytes each."""

    def __init__(self, contents: Contents) -> None:
        self._contents = contents
        self._digests = np.empty(len(contents.labels), dtype="S16")

    def add(self, row: int, image: np.ndarray) -> None:
        """Remembers the image `(size, size, 3)` of a row."""
        digest = hashlib.blake2b(image.tobytes(), digest_size=15).digest()
        # numpy drops zeros at the end of its byte strings.
        self._digests[row] = digest + b"."

    def _pairs(self) -> tuple[np.ndarray, np.ndarray]:
        """Rows of equal images: each with the next one that equals it."""
        order = np.argsort(self._digests, kind="stable")
        equal = np.flatnonzero(self._digests[order[1:]] == self._digests[order[:-1]])
        first, second = order[equal], order[equal + 1]
        by_row = np.argsort(first)
        return first[by_row], second[by_row]

    def report(self) -> dict[str, Any]:
        """Numbers of repeated images, and examples of those that two splits share."""
        first, second = self._pairs()
        labels, splits = self._contents.labels, [c.split for c in self._contents.classes]
        split_of = np.array(splits)[labels] if len(labels) else np.array([])
        one_class = labels[first] == labels[second]
        two_splits = split_of[first] != split_of[second]
        rows = zip(first[two_splits][:EXAMPLES], second[two_splits][:EXAMPLES], strict=True)
        return {
            "in_one_class": int(one_class.sum()),
            "in_two_classes_of_a_split": int((~one_class & ~two_splits).sum()),
            "in_two_splits": int(two_splits.sum()),
            "examples": [[self._contents.called(int(row)) for row in pair] for pair in rows],
        }
