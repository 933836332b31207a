"""The environment variables of every computing process, in this one place.

The number of threads is that of a stage's config, whatever Snakemake scales the rule's down to with
fewer cores. It is set before torch is imported: after `torch.set_num_threads(k)` with k above 1,
batched linear algebra breaks in some builds of torch.
"""

import os
from pathlib import Path

from epcore.errors import UserError
from epcore.files import fingerprint, sha256


def check_unedited(config: Path, begins: bool) -> None:
    """Raises `UserError` in a job that finds another config than the run that started it.

    Jobs on a cluster read the config again; two configs in one run would be mixed in its results.

    Args:
        config: the config folder.
        begins: whether this is the process that begins the run, whose config counts.
    """
    files = [file for ending in ("yaml", "csv") for file in sorted(config.rglob(f"*.{ending}"))]
    digest = fingerprint(*map(sha256, files))
    if begins:
        os.environ["EPCORE_CONFIG_DIGEST"] = digest
    elif os.environ.get("EPCORE_CONFIG_DIGEST", digest) != digest:
        raise UserError(
            f"{config}/ was edited after this run had begun; run the same command again"
        )
