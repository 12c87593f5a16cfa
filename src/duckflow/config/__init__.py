"""Settings: composed of each room's own, loaded in layers."""
