"""The demonstration behind `agentmark demo`: a courier agent, marked, its log damaged, its identity read back."""
