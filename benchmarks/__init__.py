"""Side by side against xprof: `python -m benchmarks`; files to measure on: `python -m benchmarks.generate`."""
