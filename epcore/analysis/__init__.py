"""What embedding propagation does, measured and drawn: the figures that are not of a table."""
