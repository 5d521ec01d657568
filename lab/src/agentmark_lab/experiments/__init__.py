"""The experiments, by what they ask.

None imports another: what two of them share is in the kit, or in a helper of their group.
"""
