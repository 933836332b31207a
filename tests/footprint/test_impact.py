"""The paper's own arithmetic."""

import pytest

from epcore.footprint.impact import PAPER, impact


def test_the_papers_hours_at_its_power_are_122_kg_not_147():
    assert impact(24480, 250, 0.02) == pytest.approx(122.4)
    assert impact(24480, 300, 0.02) == pytest.approx(146.88)
    assert PAPER.computed == pytest.approx(122.4)
    assert PAPER.watts_of_printed == pytest.approx(300)


def test_the_sentences_correct_both_slips():
    text = PAPER.sentences()
    assert "24480 h at 250 W and 0.02 kg/kWh give 122.4 kg" in text
    assert "not the printed 146.88 kg, which need 300 W" in text
    assert "680.8 % of 146.88 kg, not the printed 685 %" in text
    assert "817.0 % of 122.4 kg" in text
