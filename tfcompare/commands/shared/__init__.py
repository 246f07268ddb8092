"""What several commands share: reading arguments, loading runs, printing."""
