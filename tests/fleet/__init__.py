"""Stories of the fleet."""
