"""The policies that guide a small model through a turn step by step. For other models none of them is loaded."""
