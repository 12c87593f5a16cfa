"""Stories about the Pacemaker."""
