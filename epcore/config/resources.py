"""What jobs ask of their machine."""

from pydantic import Field, PositiveInt

from epcore.settings import Settings


class JobResources(Settings):
    """What a job asks of its machine."""

    threads: PositiveInt = Field(description="processor cores of a job")
    mem_mb: PositiveInt = Field(description="memory of a job, in MB")
    runtime: PositiveInt = Field(description="minutes that a job may take")


class Resources(JobResources):
    """What a training asks of its machine, and jobs of other stages.

    Where there are no GPUs the same jobs run on the CPU.
    """

    gpus: PositiveInt = Field(
        default=1,
        description="graphics cards that do one pretraining together; other trainings and "
        "embedding use one",
    )
    data: JobResources = Field(description="of a job that builds a data set")
    embed: JobResources = Field(description="of a job that computes features")
    evaluate: JobResources = Field(description="of a job that tests on episodes")
