"""Reviews: an agent reads a change, and its findings are demonstrated by witnesses that were really run."""
