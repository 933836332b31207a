"""codecarbon's offline tracker as a meter."""

from types import SimpleNamespace
from typing import Any

import psutil
from codecarbon import OfflineEmissionsTracker
from codecarbon.core.gpu import AllGPUDevices, is_nvidia_system, is_rocm_system
from codecarbon.core.hardware_cache import clear_cache, get_cached_tdp
from codecarbon.external.logger import logger

from epcore.footprint.meter import Reading, Scope

DAY = 86_400


class OwnMeter:
    """The tracker, which looks nothing up on the network.

    Without power counters it takes the processor's power from the load of the whole machine; with
    them the counters are the whole machine's too.
    """

    def __init__(self, scope: Scope) -> None:
        """Starts the tracker.

        Raises:
            ValueError: for a GPU that it cannot measure.
        """
        logger.setLevel("CRITICAL")
        # It would take "all GPUs" for "none" where an earlier meter of this process had none.
        clear_cache()
        # What codecarbon would take more than a second to find out is known of this machine.
        known: Any = SimpleNamespace(TDP=lambda: SimpleNamespace(model=scope.cpu, tdp=None))
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
            force_cpu_power=scope.cpu_power,
            force_ram_power=scope.ram_power,
            gpu_ids=_indices(scope.gpus) if scope.gpus else [],
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

    def read(self) -> Reading:
        """Up to now."""
        self._tracker.flush()
        # Of each second, and never read here: a training may take weeks.
        self._tracker._clear_utilization_history()
        return self._reading()

    def stop(self) -> Reading:
        """The last reading."""
        self._tracker.stop()
        return self._reading()

    def _reading(self) -> Reading:
        # The tracker swallows its own exceptions: without a total it does not work.
        total = self._total
        return Reading(total.cpu_energy, total.ram_energy, total.gpu_energy, _busy_seconds())


def _busy_seconds() -> float:
    """Processor time of the whole machine."""
    times = psutil.cpu_times()
    kinds = ("user", "nice", "system", "irq", "softirq")
    return float(sum(getattr(times, kind, 0.0) for kind in kinds))


def _indices(gpus: list[str]) -> list[int]:
    """Of GPUs as NVML counts them; codecarbon itself does not find the UUIDs of NVIDIA's."""
    if not (is_nvidia_system() or is_rocm_system()):
        raise ValueError("without nvidia-smi or rocm-smi codecarbon measures no GPU")
    known = {gpu["uuid"]: gpu["gpu_index"] for gpu in AllGPUDevices().get_gpu_static_info()}
    known |= {str(index): index for index in known.values()}
    if missing := [gpu for gpu in gpus if gpu not in known]:
        raise ValueError(f"no counters of GPU {', '.join(missing)}")
    return [known[gpu] for gpu in gpus]
