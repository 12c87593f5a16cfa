"""The code map: which classes and functions the project's files define, and where they are used."""
