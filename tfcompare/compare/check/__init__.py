"""Conditions of `tfcompare check`: what they measure and how they are judged."""
