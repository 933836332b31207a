"""ILSVRC2012 as its owners give it: folders of classes, a tar of each, or one tar of all.

The development kit says how many images each class has. A class with another number is refused,
because the lists of mini-ImageNet count images: one missing file would shift all that follow.
"""

import io
import re
import tarfile
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from scipy.io import loadmat
from tqdm import tqdm

from epcore.data.archives import Read, damage_told, files_of_tar
from epcore.errors import UserError

KIT = "ILSVRC2012_devkit_t12/data"


@dataclass(frozen=True)
class DevelopmentKit:
    """Number of training images by class (its synset, n01440764 say), and the class of each
    validation image in the order of their numbers, from 1.
    """

    counts: dict[str, int]
    validation: list[str]

    @classmethod
    def read(cls, path: Path) -> "DevelopmentKit":
        """Reads ILSVRC2012_devkit_t12.tar.gz."""
        names = (f"{KIT}/meta.mat", f"{KIT}/ILSVRC2012_validation_ground_truth.txt")
        members = {name: read() for name, read in files_of_tar(path) if name in names}
        synsets = loadmat(io.BytesIO(members[names[0]]), squeeze_me=True)["synsets"]
        # Inner nodes of the hierarchy have children and no images of their own.
        leaves = [synset for synset in synsets if int(synset["num_children"]) == 0]
        ids = {int(leaf["ILSVRC2012_ID"]): str(leaf["WNID"]) for leaf in leaves}
        counts = {str(leaf["WNID"]): int(leaf["num_train_images"]) for leaf in leaves}
        return cls(counts, [ids[int(line)] for line in members[names[1]].split()])


class TrainingImages:
    """The training images of some classes, counted when opened.

    Args:
        path: `ILSVRC2012_img_train.tar`, or a folder with either a folder or a tar of each class.
        kit: the development kit.
        synsets: the classes that are asked for.

    Raises:
        UserError: if a class is missing, or has another number of images than it should have.
    """

    def __init__(self, path: Path, kit: DevelopmentKit, synsets: Iterable[str]) -> None:
        self._path = path
        self._starts: dict[str, int] = {}  # of each class's tar in the tar of all
        if not path.is_dir():
            with damage_told(path), tarfile.open(path, "r:") as archive:
                self._starts = {Path(tar.name).stem: tar.offset_data for tar in archive}
        self._numbers = {
            synset: self._count(synset, kit.counts[synset])
            for synset in tqdm(list(synsets), desc="count images", unit="class", disable=None)
        }

    def numbers(self, synset: str) -> np.ndarray:
        """The numbers in the class's file names, ascending: the order of the split's ranks."""
        return self._numbers[synset]

    def read(
        self, numbers_by_synset: Iterable[tuple[str, np.ndarray]]
    ) -> Iterator[tuple[int, str, bytes]]:
        """Row from 0, name and content of the images of each class that have these numbers."""
        row = 0
        for synset, numbers in numbers_by_synset:
            with self._files(synset) as files:
                for name in (f"{synset}_{number}.JPEG" for number in numbers):
                    yield row, f"{self._path}, {name}", files[name]()
                    row += 1

    @contextmanager
    def _files(self, synset: str) -> Iterator[dict[str, Read]]:
        """The files of a class by name, each as what reads it."""
        folder, tar = self._path / synset, self._path / f"{synset}.tar"
        if folder.is_dir():
            yield {path.name: path.read_bytes for path in folder.iterdir()}
        elif synset in self._starts or tar.is_file():
            with (self._path if self._starts else tar).open("rb") as content:
                content.seek(self._starts.get(synset, 0))
                yield dict(files_of_tar(tar, content))
        else:
            raise UserError(f"{self._path} has no class {synset}, neither a folder nor a tar")

    def _count(self, synset: str, expected: int) -> np.ndarray:
        with self._files(synset) as files:
            names = list(files)
        pattern = re.compile(rf"{synset}_(\d+)\.JPEG")
        numbers = [int(match[1]) for name in names if (match := pattern.fullmatch(name))]
        if len(numbers) != expected:
            raise UserError(
                f"{self._path}: class {synset} has {len(numbers)} images, ILSVRC2012 has "
                f"{expected}",
                "unpack it again (a missing file would shift the split's ranks)",
            )
        return np.sort(np.array(numbers, dtype=np.int64))


def validation_images(path: Path, kit: DevelopmentKit) -> Iterator[tuple[int, str, bytes]]:
    """Number from 1, name and content of each validation image.

    Args:
        path: `ILSVRC2012_img_val.tar`, or a folder of its images, flat or in folders of classes.
        kit: the development kit.

    Raises:
        UserError: if one is missing.
    """
    # After a folder, or after the tar: "PATH OF THE TAR, NAME".
    pattern = re.compile(r"[/ ]ILSVRC2012_val_(\d{8})\.JPEG$")
    missing = set(range(1, len(kit.validation) + 1))
    for name, data in _pictures(path):
        if match := pattern.search(name):
            number = int(match[1])
            if number not in missing:
                raise UserError(f"{name}: ILSVRC2012 has no such image, or it is there twice")
            missing.remove(number)
            yield number, name, data
    if missing:
        raise UserError(
            f"{path} lacks {len(missing)} of {len(kit.validation)} validation images, for "
            f"example ILSVRC2012_val_{min(missing):08d}.JPEG",
            "unpack it again",
        )


def _pictures(path: Path) -> Iterator[tuple[str, bytes]]:
    if path.is_dir():
        for file in sorted(path.rglob("*.JPEG")):
            yield str(file), file.read_bytes()
    else:
        for name, read in files_of_tar(path):
            yield f"{path}, {name}", read()
