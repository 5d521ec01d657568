"""Elicitation: how a model's probability list over candidate behaviors is obtained. Each way is one small module."""
