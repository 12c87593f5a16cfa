"""Reviews: an agent reads a change and reports findings. Witnesses (commands that are really run) show the findings."""
