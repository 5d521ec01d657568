"""From readings of steps to candidate payloads, when some steps are wrong. A candidate is then judged as a claim."""
