"""codecarbon's offline tracker, in the process of the job, as a meter of the whole machine."""

from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any

import psutil
from codecarbon import OfflineEmissionsTracker
from codecarbon.core import cpu
from codecarbon.core.gpu import AllGPUDevices, is_nvidia_system, is_rocm_system
from codecarbon.core.hardware_cache import clear_cache, get_cached_tdp
from codecarbon.external import hardware
from codecarbon.external.logger import logger

from epcore.footprint.machine import Machine

YEAR = 365 * 86_400  # seconds, longer than any job


@dataclass(frozen=True)
class Reading:
    """Energies in kWh since the meter started, without PUE: all processors, the memory, some GPUs.

    busy: processor time of the whole machine in seconds, since an arbitrary moment.
    """

    cpu: float
    ram: float
    gpu: float
    busy: float


class Meter:
    """Measures all processors and the memory of this machine, and some of its GPUs.

    The processors' energy is that of their power counters where codecarbon can read them, else
    their power at full load times (0.1 + 0.9 load³), of the whole machine's load. The memory's
    power is constant, a GPU has a counter. It asks no network and writes no file. Not for two
    threads at once.

    counters: whether the processors' are there now.
    """

    def __init__(self, machine: Machine, gpus: list[str]) -> None:
        """Starts the tracker; gpus: indices or UUIDs, as in CUDA_VISIBLE_DEVICES.

        Raises:
            ValueError: for a GPU that it cannot measure.
        """
        logger.setLevel("CRITICAL")
        self.counters = machine.settings.cpu_power is None and cpu.is_rapl_available()
        # It would take "all GPUs" for "none" where an earlier tracker of this process had none.
        clear_cache()
        # The processors' power is known or counted; codecarbon would take almost a second of
        # processor time to look it up, and to find out their name.
        unnamed: Any = SimpleNamespace(TDP=lambda: SimpleNamespace(model="", tdp=None))
        get_cached_tdp(unnamed)  # type: ignore[no-untyped-call]
        hardware.detect_cpu_model = lambda: ""  # type: ignore[assignment,attr-defined]
        # What is not given here would be read from a file in the user's home. PUE and factor are
        # applied by the caller. `flush` alone measures, so no timer is in its way.
        self._tracker = OfflineEmissionsTracker(
            country_iso_code=None,
            region=None,
            cloud_provider=None,
            cloud_region=None,
            country_2letter_iso_code=None,
            electricitymaps_api_token=None,
            force_carbon_intensity_g_co2e_kwh=0.0,
            pue=1.0,
            force_cpu_power=None if self.counters else machine.cpu_power,
            force_ram_power=machine.ram_power,
            rapl_prefer_psys=False,
            gpu_ids=_indices(gpus) if gpus else [],
            tracking_mode="machine",
            measure_power_secs=YEAR,
            api_call_interval=-1,
            emissions_endpoint=None,
            output_dir=".",
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

    def read(self, last: bool = False) -> Reading:
        """Up to now; the last reading stops the tracker.

        Raises:
            RuntimeError: if the tracker has failed.
        """
        self._total = None
        if last:
            self._tracker.stop()
        else:
            self._tracker.flush()
            # One number of each second, and never read here: a training may take weeks.
            self._tracker._clear_utilization_history()
        total = self._total
        if total is None:  # it swallows its own exceptions
            raise RuntimeError("its tracker gives no energies")
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
