"""Settings: composed of the settings of each room, loaded in layers."""
