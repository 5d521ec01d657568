"""What the theorems promise, measured on the shipped core; and what it costs in time."""
