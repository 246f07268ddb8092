"""Sources of runs: folders, URLs, uploads and live programs; and the names of runs."""
