"""What a change of time is made of: shapes, work, and the rate at which it is done."""
