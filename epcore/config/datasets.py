"""The file datasets.yaml."""

from pydantic import Field

from epcore.data.datasets import DataSet, Source
from epcore.settings import Settings


class DataSources(Settings):
    """The file datasets.yaml."""

    sources: dict[str, Source] = Field(description="name -> files that others published")
    datasets: dict[str, DataSet] = Field(description="name -> data set")
