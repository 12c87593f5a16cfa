"""The Pacemaker watches how the work goes, limits it, and decides when to stop and ask. It does no I/O and calls no
model: it takes in steps and returns verdicts."""
