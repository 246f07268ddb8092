"""Results that travel: reports, and what notebooks show."""
