"""What a verdict may cost. By itself, so that a command can say so without loading what it is spent on."""

# What one verdict may spend on looking for a payload, unless said otherwise: in operations of `costs.py`.
DEFAULT_WORK_LIMIT = 1_500_000
