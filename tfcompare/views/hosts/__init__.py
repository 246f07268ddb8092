"""The Hosts page, and the part of other pages that chooses hosts."""
