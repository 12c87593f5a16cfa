"""How Duckflow is doing, how far it may go, and when it must stop and ask. Pure: steps in, verdicts out."""
