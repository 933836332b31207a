"""Data sets, their sources and their episodes: the configs of the stages that make them."""

from pathlib import Path

from epcore.data.config import DataConfig, EpisodesConfig, EpisodeSettings, FetchConfig
from epcore.data.datasets import BESIDE_PIXELS, OfficialData, OwnData
from epcore.plan import paths
from epcore.plan.registry import Registry
from epcore.settings import pick


class Data:
    """The data sets of a registry; methods named after a stage make its config."""

    def __init__(self, registry: Registry) -> None:
        self._registry = registry

    def fetch(self, source: str) -> FetchConfig:
        """Paths and checksums: other addresses or terms change nothing about the files."""
        files = self._registry.sources[source].files
        return FetchConfig(
            files={key: file.model_copy(update={"urls": ()}) for key, file in files.items()},
        )

    def build(self, dataset: str) -> DataConfig:
        return DataConfig(dataset=self._registry.datasets[dataset].model_copy(update=BESIDE_PIXELS))

    def receipts(self, dataset: str) -> list[str]:
        """Receipts of the sources that a data set is built from; a change of one rebuilds it."""
        settings = self._registry.datasets[dataset]
        if not isinstance(settings, OfficialData):
            return []
        return [self._registry.path(paths.RECEIPT, source=name) for name in settings.sources]

    def own_file(self, dataset: str) -> list[str]:
        """The file of one's own that a data set is built from, if there; a change rebuilds it."""
        settings = self._registry.datasets[dataset]
        if not isinstance(settings, OwnData):
            return []
        path = Path(settings.path)
        file = path if settings.kind == "npz" else path / "split.csv"
        return [str(file)] if file.is_file() else []

    def episodes(self, protocol: str) -> EpisodesConfig:
        settings = pick(self._registry.protocols, protocol, "protocol", "config/protocols.yaml")
        counts = self._registry.scale.episodes
        count = getattr(counts, settings.split)
        return EpisodesConfig(
            **settings.model_dump(include=set(EpisodeSettings.model_fields)),
            episodes=min(count, settings.episodes or count),
            seed=counts.seed,
        )
