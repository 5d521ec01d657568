"""Marked agents on a social platform, alone and beside a watermark in their texts."""
