"""The files of a small pipeline are attacked here."""

from small_pipeline import project, whole  # noqa: F401 - fixtures
