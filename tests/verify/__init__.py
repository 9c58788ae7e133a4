"""Verifying what is stored: healthy runs pass, every kind of damage is named."""
