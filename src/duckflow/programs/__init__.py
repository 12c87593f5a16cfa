"""Programs that Duckflow starts: where they lie, how they are launched, run and ended."""
