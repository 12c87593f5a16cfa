"""What leads a small model through a turn. Nothing of it is loaded for a model that is not led."""
