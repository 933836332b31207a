"""The file datasets.yaml."""

from pydantic import Field

from epcore.data.datasets import DataSet, Source
from epcore.settings import Settings


class DataSources(Settings):
    """The file datasets.yaml."""

    sources: dict[str, Source] = Field(description="name -> files that others published")
    datasets: dict[str, DataSet] = Field(description="name -> data set")


# Kinds that one core packs in two minutes at most: drawn, or published as arrays or few pictures.
# Others are ILSVRC2012's, long lists of pictures, or one's own of any size.
QUICKLY_PACKED = ("glyphs", "more-glyphs", "cifar-100", "cub", "mini-imagenet-pickles")
