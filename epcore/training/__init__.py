"""Pretraining and episodic fine-tuning, and the loop they share."""
