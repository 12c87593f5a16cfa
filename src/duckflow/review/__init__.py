"""Reviews: a change is read by an agent of its own, and what it finds is shown by witnesses that were really run."""
