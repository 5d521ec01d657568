"""Audits beyond one machine, on engines that exist: Daft (natively and on Ray) and Spark."""
