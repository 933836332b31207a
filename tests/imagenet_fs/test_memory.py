"""The feature stage's memory does not follow the data, as the benchmark measures it."""

import runpy
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.slow

BENCHMARK = Path(__file__).parents[2] / "benchmarks" / "feature_memory.py"


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc/self/status")
def test_four_times_the_data_takes_no_fifth_of_it_more_memory(monkeypatch):
    """One mapping that stays open would take all of it."""
    monkeypatch.syspath_prepend(BENCHMARK.parent)
    (less, first), (more, second) = runpy.run_path(str(BENCHMARK))["measure"](6000)
    assert more > 3.9 * less
    assert second - first < 0.2 * (more - less)
