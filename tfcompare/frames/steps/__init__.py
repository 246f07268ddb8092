"""The steps of a profile and what their time is made of."""
