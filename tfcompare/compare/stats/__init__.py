"""Is a change real: confidence intervals and verdicts."""
