"""What `tools/bench_audit.py` measures with: logs of any size, and what a command costs."""
