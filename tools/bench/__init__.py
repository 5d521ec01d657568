"""What the benches measure with: logs of any size, what a command costs, and the pages that they write."""
