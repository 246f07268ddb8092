"""Steps: their times, their parts, slow steps, and what a change of step time is made of."""
