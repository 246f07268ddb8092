"""Finds the steps of a profile and what their time is spent on."""
