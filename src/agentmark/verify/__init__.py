"""The verifying side: take a log in, accumulate, merge, judge (spec, section 9)."""
