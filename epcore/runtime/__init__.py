"""What jobs share at run time: devices, signals, environment and resumable states."""
