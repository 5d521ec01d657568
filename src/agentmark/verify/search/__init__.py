"""Decoders: each proposes payloads that may explain the steps. The judge weighs what they propose."""
