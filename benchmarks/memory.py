"""Memory of packing and of embedding, at ten times the data.

Memory is what a process has of its own (RssAnon): pages of the mapped image file belong to the
kernel, which takes them back when it needs them.
"""

import json
import re
import subprocess
import sys
import tempfile
import threading
from pathlib import Path

from measure import row

PIXELS, CLASSES, IMAGES = 32, 40, 100


def own_bytes() -> int:
    status = Path("/proc/self/status").read_text(encoding="utf-8")
    return 1024 * int(re.search(r"RssAnon:\s+(\d+)", status)[1])


def child(what: str, folder: Path, images: int) -> None:
    """Does the work once, and prints the memory before it and at its peak."""
    import numpy as np
    import torch
    from stores import noise_store

    from epcore.backbones.checkpoint import build
    from epcore.data.augment import Augmenter
    from epcore.data.store import ImageStore
    from epcore.evaluation.embed import embed
    from epcore.plan import Plan

    stage = Plan(Path("config"), "small").runs.embed("conv4", "epnet")
    backbone, augmenter = build(stage.backbone), Augmenter((), stage.view)
    before = peak = own_bytes()
    over = threading.Event()

    def watch() -> None:
        nonlocal peak
        while not over.wait(0.002):
            peak = max(peak, own_bytes())

    watcher = threading.Thread(target=watch)
    watcher.start()
    if what == "pack":
        noise_store(folder, PIXELS, CLASSES, images)
    else:
        store = ImageStore.open(folder)
        rows = np.arange(len(store.labels))
        embed(backbone, store, rows, augmenter, torch.device("cpu"), "bf16")
    over.set()
    watcher.join()
    print(json.dumps([before, peak]))


def main() -> None:
    with tempfile.TemporaryDirectory() as name:
        for what, verb in (("pack", "packing"), ("embed", "embedding")):
            peaks, work = [], []
            for times in (1, 10):
                folder = Path(name, f"noise{times}")
                command = [sys.executable, __file__, what, str(folder), str(IMAGES * times)]
                done = subprocess.run(command, capture_output=True, text=True, check=True)
                before, peak = json.loads(done.stdout.splitlines()[-1])
                peaks.append(peak)
                work.append((peak - before) / 2**20)
            count = CLASSES * IMAGES
            row(
                f"{verb}: peak memory at ten times the data",
                peaks[1] / peaks[0],
                1.1,
                False,
                f"{work[0]:.0f} MiB over the idle process for {count:,} images of {PIXELS} pixels, "
                f"{work[1]:.0f} MiB for {10 * count:,}, which are "
                f"{10 * count * PIXELS**2 * 3 / 2**20:.0f} MiB",
            )


if __name__ == "__main__":
    if len(sys.argv) > 1:
        child(sys.argv[1], Path(sys.argv[2]), int(sys.argv[3]))
    else:
        main()
