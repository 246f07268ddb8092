"""What the steps of two sides are: their iterations, their kinds, and the verdicts on their times."""
