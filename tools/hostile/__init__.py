"""Files made to cost their reader time or memory, and what each command makes of them."""
