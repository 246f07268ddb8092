"""What one page or command shows, as plain frames."""
