"""codecarbon's offline tracker as a meter."""

from types import SimpleNamespace
from typing import Any

from codecarbon import OfflineEmissionsTracker
from codecarbon.core.hardware_cache import get_cached_tdp
from codecarbon.external.logger import logger

from epcore.footprint.machine import Machine
from epcore.footprint.meter import Energies

DAY = 86_400


class OwnMeter:
    """The tracker, which looks nothing up on the network.

    Without power counters it takes the processor's power from the load of the whole machine; with
    them the counters are the whole machine's too.
    """

    def __init__(self, machine: Machine, gpus: list[str]) -> None:
        """gpus: as for `find_meter`."""
        logger.setLevel("CRITICAL")
        # What codecarbon would take more than a second to find out is known of this machine.
        known: Any = SimpleNamespace(TDP=lambda: SimpleNamespace(model=machine.cpu, tdp=None))
        get_cached_tdp(known)  # type: ignore[no-untyped-call]
        # Every setting is given, else it would be read from a file in the user's home. Factor and
        # PUE are applied by the caller. `flush` alone measures, so no timer is in its way.
        self._tracker = OfflineEmissionsTracker(
            country_iso_code=None,
            region=None,
            cloud_provider=None,
            cloud_region=None,
            country_2letter_iso_code=None,
            electricitymaps_api_token=None,
            force_carbon_intensity_g_co2e_kwh=0.0,
            pue=1.0,
            force_cpu_power=None if machine.counters else machine.cpu_power,
            force_ram_power=machine.ram_power,
            gpu_ids=gpus,
            tracking_mode="machine",
            measure_power_secs=DAY,
            api_call_interval=-1,
            emissions_endpoint=None,
            output_methods=[],
            output_handlers=[self],
            allow_multiple_runs=True,
            log_level="critical",
        )
        self._total: Any = None
        self._tracker.start()

    def out(self, total: Any, delta: Any) -> None:
        """Called by the tracker with its totals."""
        self._total = total

    def exit(self) -> None:
        """Called by the tracker at its end."""

    def read(self) -> Energies:
        """Up to now."""
        self._tracker.flush()
        return self._energies()

    def stop(self) -> Energies:
        """The last ones."""
        self._tracker.stop()
        return self._energies()

    def _energies(self) -> Energies:
        # The tracker swallows its own exceptions: without a total it does not work.
        total = self._total
        return Energies(total.cpu_energy, total.ram_energy, total.gpu_energy)
