"""The file datasets.yaml."""

from pydantic import Field

from epcore.config.names import Name
from epcore.data.datasets import DataSet, Source
from epcore.settings import Settings


class DataSources(Settings):
    """The file datasets.yaml."""

    sources: dict[Name, Source] = Field(description="name -> files that others published")
    datasets: dict[Name, DataSet] = Field(description="name -> data set")
