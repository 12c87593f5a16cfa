"""Tries a turn's claim that its work is done: whether its tests fail without the change, whether new code is used, and
whether every change was asked for."""
