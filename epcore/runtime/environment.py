"""The environment variables of every computing process, in this one place.

The number of threads is that of a stage's config, whatever Snakemake scales the rule's down to with
fewer cores. It is set before torch is imported: after `torch.set_num_threads(k)` with k above 1,
batched linear algebra breaks in some builds of torch.
"""

import os

ENVIRONMENT = {
    # Threads that wait sleep; spinning ones starve the jobs beside them.
    "OMP_WAIT_POLICY": "PASSIVE",
    # MKL would use fewer threads than it is told where there are fewer cores.
    "MKL_DYNAMIC": "FALSE",
    # glibc keeps large blocks instead of returning them to the kernel after every layer, which
    # would have to clear each page again: up to twice the speed of small networks.
    "MALLOC_MMAP_THRESHOLD_": "4294967296",
    "MALLOC_TRIM_THRESHOLD_": "8589934592",
    "MALLOC_TOP_PAD_": "268435456",
}


def compute_with(threads: int) -> None:
    """Sets the number of threads of torch and NumPy, which are imported later."""
    for library in ("OMP", "MKL", "OPENBLAS"):
        os.environ[f"{library}_NUM_THREADS"] = str(threads)
