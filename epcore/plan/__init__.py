"""What is to be computed: config files -> validated settings -> runs -> files.

Pure Python over YAML: importing it loads neither torch, numpy nor pandas, because Snakemake
imports it once per cluster job.
"""

from epcore.plan.plan import Plan

__all__ = ["Plan"]
