"""Programs that Duckflow starts: how they are found, launched, run and ended."""
