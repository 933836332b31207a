"""The settings of data sets and of the files that they come from."""

from typing import Annotated, ClassVar, Literal

from pydantic import Field, NonNegativeInt, PositiveInt

from epcore.settings import Settings

# -- where files come from ------------------------------------------------------------------------


class SourceFile(Settings):
    """One file of a source.

    Without `sha256` and `md5` nobody published a checksum: size and content are all there is.
    """

    path: str = Field(description="its place below the data root")
    urls: tuple[str, ...] = Field(
        default=(),
        description="where it is downloaded from, in this order; without any it is got by hand",
    )
    size: PositiveInt | None = Field(default=None, description="in bytes")
    sha256: Annotated[str, Field(pattern="^[0-9a-f]{64}$")] | None = Field(
        default=None, description="its SHA-256 checksum, if somebody published it"
    )
    md5: Annotated[str, Field(pattern="^[0-9a-f]{32}$")] | None = Field(
        default=None, description="its MD5 checksum, if somebody published it"
    )
    unpacked: str | None = Field(
        default=None, description="a folder below the data root that is as good as the file"
    )


class Source(Settings):
    """Files that belong together, with their license and terms."""

    title: str = Field(description="what it is")
    license: str = Field(description="its license, as its publisher names it")
    terms: str = Field(description="what one may do with it")
    by_hand: tuple[str, ...] = Field(
        default=(), description="the steps to get what no program may download"
    )
    files: dict[str, SourceFile] = Field(description="name -> file")


# -- data sets ------------------------------------------------------------------------------------


SharedImages = Literal["refuse", "keep", "leave-out"]
# What no pixel depends on: a change of it builds no data anew.
BESIDE_PIXELS = {"title": "", "rotations_are_classes": False}


class DataSetSettings(Settings):
    """What every data set says."""

    title: str = Field(description="how captions call it")
    shared_images: SharedImages = Field(
        default="refuse",
        description="what becomes of an image that two splits have, pixel by pixel: an error, "
        "kept in both, or left out of base, then of val",
    )
    rotations_are_classes: bool = Field(
        default=False,
        description="whether a turned picture is of another class; then no network is pretrained "
        "on rotated copies, whatever its recipe says",
    )

    @property
    def caption(self) -> str:
        """The title, and what readers of its numbers have to know."""
        remarks = []
        if self.shared_images == "leave-out":
            remarks.append("images that splits share left out of base and val, see store.json")
        if self.rotations_are_classes:
            remarks.append("its rotations are classes: no rotated copies, no rotation loss")
        return f"{self.title} ({'; '.join(remarks)})" if remarks else self.title


class PerSplit(Settings):
    """A number for each split."""

    base: PositiveInt = Field(description="in base, which networks are trained on")
    val: PositiveInt = Field(description="in val, for choices")
    novel: PositiveInt = Field(description="in novel, for tests")


class Pixels(Settings):
    """How a picture becomes a square of `image_size`."""

    processing: Literal["resize", "center-crop"] = Field(
        default="resize", description="squeeze the whole picture, or take the central square first"
    )
    filter: Literal["bilinear", "bicubic"] = Field(
        default="bilinear",
        description="Pillow's filter; it weighs all pixels that a new one covers",
    )


class Expected(Settings):
    """What a published data set has in each split; anything else is an error."""

    classes: PerSplit = Field(description="classes of each split")
    images: PerSplit | None = Field(default=None, description="images of each split")


class RandomSplit(PerSplit):
    """Numbers of classes, drawn from a seed."""

    seed: NonNegativeInt = Field(description="shuffles the classes")


class GlyphPictures(DataSetSettings):
    """Characters drawn from a seed; see `epcore.data.builders.glyphs`."""

    selection: Literal["mini", "tiered", "fine", "large"] = Field(
        description="which characters: 100 classes, classes split by script, letters that differ "
        "in a diacritic, or 1000 classes"
    )
    image_size: PositiveInt = Field(description="side of the stored square, in pixels")
    images_per_class: PerSplit = Field(description="images of each class, by split")
    seed: NonNegativeInt = Field(description="draws the images")


class GlyphData(GlyphPictures):
    """The first pictures of each class."""

    kind: Literal["glyphs"]


class MoreGlyphData(GlyphPictures):
    """Further pictures of the classes of other glyphs."""

    kind: Literal["more-glyphs"]
    skip: NonNegativeInt = Field(description="images of each class that the other data set has")


class OwnData(DataSetSettings):
    """A data set of the user's own; without `split` it says itself which class is in which.

    See `epcore.data.builders.folder` and `epcore.data.builders.arrays`.
    """

    shared_images: Literal["refuse", "leave-out"] = Field(
        default="refuse",
        description="what becomes of an image that two splits have: an error, or left out of "
        "base, then of val",
    )
    path: str = Field(description="the folder or file, relative to where Snakemake runs")
    image_size: PositiveInt = Field(description="side of the stored square, in pixels")
    pixels: Pixels = Field(default=Pixels(), description="how a picture becomes that square")
    split: RandomSplit | None = Field(
        default=None,
        description="numbers of classes of a random split; without it the data say which class is"
        " in which",
    )
    kind: Literal["folder", "npz"] = Field(
        description="a folder `images/<class>/<file>`, or an `.npz` of images and labels"
    )


class OfficialData(DataSetSettings):
    """A published data set, out of sources of datasets.yaml: pixels and, where needed, lists.

    Others compare with it, so that it is kept as it is, unless its settings say otherwise.
    """

    shared_images: Literal["keep", "leave-out"] = Field(
        default="keep",
        description="what becomes of an image that two splits have: kept in both, as others have "
        "it, or left out of base, then of val",
    )
    images: str = Field(description="the source of its images")
    expected: Expected = Field(description="what each split must have")

    @property
    def sources(self) -> list[str]:
        """The names of all sources that it reads."""
        roles = [getattr(self, role, None) for role in ("images", "lists", "devkit")]
        return [name for name in roles if name is not None]


class OfficialPictures(OfficialData):
    """Pictures of any size, which become squares."""

    image_size: PositiveInt = Field(description="side of the stored square, in pixels")
    pixels: Pixels = Field(description="how a picture becomes that square")


class IlsvrcData(OfficialPictures):
    """Pictures of ILSVRC2012."""

    lists: str = Field(description="the source that says which image or class is in which split")
    devkit: str = Field(description="the source of ILSVRC2012's development kit")


class CifarData(OfficialData):
    """Classes of CIFAR-100 at its 32 pixels: CIFAR-FS or FC100, as `lists` says."""

    kind: Literal["cifar-100"]
    image_size: ClassVar = 32
    lists: str = Field(description="the source that says which class is in which split")


class OmniglotData(OfficialPictures):
    """Characters in four rotations, each rotation a class."""

    kind: Literal["omniglot"]
    lists: str = Field(description="the source that says which character is in which split")


class CubData(OfficialPictures):
    """CUB-200-2011; its split follows from the order of its classes."""

    kind: Literal["cub"]


class MiniImageNetData(IlsvrcData):
    """mini-ImageNet out of ILSVRC2012."""

    kind: Literal["mini-imagenet"]


class MiniImageNetPickles(OfficialData):
    """mini-ImageNet out of `mini-imagenet-cache-*.pkl`, at their 84 pixels."""

    kind: Literal["mini-imagenet-pickles"]
    image_size: ClassVar = 84
    lists: str = Field(description="the source that says which image is in which split")


class TieredImageNetData(IlsvrcData):
    """tiered-ImageNet out of ILSVRC2012."""

    kind: Literal["tiered-imagenet"]


class TieredImageNetPickles(OfficialData):
    """tiered-ImageNet out of `*_images_png.pkl`, at their 84 pixels."""

    kind: Literal["tiered-imagenet-pickles"]
    image_size: ClassVar = 84


class ImageNetFsData(IlsvrcData):
    """ImageNet-FS out of ILSVRC2012, in one of two readings of its published indices."""

    kind: Literal["imagenet-fs"]
    shared_images: Literal["keep"] = Field(
        default="keep", description="images that two splits have are kept in both"
    )
    reading: Literal["by-name", "by-sorted-index"] = Field(
        description="whether the published numbers of classes count their names as listed, or "
        "sorted, as the code of LwoF and wDAE-GNN does"
    )
    part: Literal["train", "val"] = Field(
        description="train, the images that exemplars come from, or val, the queries"
    )


DataSet = Annotated[
    GlyphData
    | OwnData
    | CifarData
    | OmniglotData
    | CubData
    | MiniImageNetData
    | MiniImageNetPickles
    | TieredImageNetData
    | TieredImageNetPickles
    | ImageNetFsData
    | MoreGlyphData,
    Field(discriminator="kind"),
]
