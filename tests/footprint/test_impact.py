"""The paper's own arithmetic."""

from dataclasses import replace

import pytest

from epcore.footprint.impact import PAPER


def test_the_papers_hours_at_its_power_are_122_kg_not_147():
    assert PAPER.computed == pytest.approx(122.4)
    assert replace(PAPER, watts=300).computed == pytest.approx(PAPER.printed)


def test_the_sentences_correct_both_slips():
    text = PAPER.sentences()
    assert "24480 h at 250 W and 0.02 kg/kWh give 122.4 kg" in text
    assert "not the printed 146.88 kg, which need 300 W" in text
    assert "680.8 % of 146.88 kg, not the printed 685 %" in text
    assert "817.0 % of 122.4 kg" in text
