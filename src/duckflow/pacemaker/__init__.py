"""The Pacemaker watches how the work goes, limits it, and decides when to stop and ask. It is pure: steps in, verdicts
out."""
