"""The tables of all hosts of a run, as pandas frames: what is made of those of single hosts."""
