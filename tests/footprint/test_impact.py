"""The paper's own arithmetic."""

import re

import pytest

from epcore.footprint.impact import COMPUTED, HOURS, PRINTED, SENTENCE, WATTS


def test_the_sentence_corrects_both_slips_by_arithmetic_that_is_right():
    numbers = [float(number) for number in re.findall(r"\d+(?:\.\d+)?", SENTENCE)]
    hours, watts, factor, kg, printed, needed, offset, percent, whose, told, of_ours, ours = numbers
    assert (hours, watts, factor, printed, whose) == (HOURS, WATTS, 0.02, PRINTED, PRINTED)
    assert hours * watts / 1000 * factor == pytest.approx(kg)
    assert kg == ours == COMPUTED
    assert hours * needed / 1000 * factor == pytest.approx(printed)
    assert percent == round(100 * offset / printed, 1) != told == 685
    assert of_ours == round(100 * offset / kg, 1)
