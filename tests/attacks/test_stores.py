"""A store with an array that claims to be larger than any memory."""

import numpy as np
import pytest

from epcore.data.store import ImageStore
from epcore.errors import UserError


def test_an_array_that_claims_a_terabyte_is_told_with_the_remedy(project):
    path = project / "toy" / "labels.npy"
    header = {"descr": "<i8", "fortran_order": False, "shape": (1 << 50,)}
    with path.open("wb") as file:
        np.lib.format.write_array_header_1_0(file, header)
        file.write(bytes(80))
    with pytest.raises(UserError, match=r"toy is damaged .*; delete the folder and run"):
        ImageStore.open(project / "toy")
