"""Features once per checkpoint, then frozen episodes solved in batches."""
