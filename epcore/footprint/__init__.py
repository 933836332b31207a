"""What the runs cost: energy and CO2 of each job, their report, and a forecast before they run."""
