"""What a verifier may claim, from how many steps, and from how little of a log."""
