"""The Machine Learning Impact calculator's estimate: hours x power x factor (arXiv:1910.09700).

These are what the paper's appendix says of its own experiments, on Tesla V100 in Quebec.
"""

HOURS, WATTS = 24480, 250
PRINTED, COMPUTED = 146.88, 122.4  # kg
SENTENCE = (
    "The paper's 24480 h at 250 W and 0.02 kg/kWh give 122.4 kg by the same formula, not the "
    "printed 146.88 kg, which need 300 W; the 1000 kg that were offset are 680.8 % of 146.88 kg, "
    "not the printed 685 %, and 817.0 % of 122.4 kg."
)
