"""Tests of the Pacemaker."""
