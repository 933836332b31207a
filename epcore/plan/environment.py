"""The environment variables of every computing process, in this one place.

Snakemake adds OMP_NUM_THREADS, the threads of the rule. It must be set from outside: after
`torch.set_num_threads(k)` with k above 1, batched linear algebra breaks in some builds of torch.
"""

ENVIRONMENT = {
    # Threads that wait sleep; spinning ones starve the jobs beside them.
    "OMP_WAIT_POLICY": "PASSIVE",
    # glibc keeps large blocks instead of returning them to the kernel after every layer, which
    # would have to clear each page again: up to twice the speed of small networks.
    "MALLOC_MMAP_THRESHOLD_": "4294967296",
    "MALLOC_TRIM_THRESHOLD_": "8589934592",
    "MALLOC_TOP_PAD_": "268435456",
}
