"""Placeholder."""


def declare(cases):
    """Declares the cases."""
