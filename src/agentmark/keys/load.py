"""Any key that marks, from its file: which kind it is, the file says."""

import os
from pathlib import Path

from agentmark.keys.errors import KeyFileError
from agentmark.keys.key import Key
from agentmark.keys.secret import json_or_none, read_private
from agentmark.keys.shared import SharedKey


def load_key(path: str | os.PathLike[str]) -> Key:
    """A shared key or a marking key; what is neither, or damaged, or readable by others, is refused."""
    content = json_or_none(read_private(Path(path), KeyFileError))
    if isinstance(content, dict) and "agentmark_marking_key" in content:
        from agentmark.keys.marking import MarkingKey

        return MarkingKey.from_content(content, source=str(Path(path)))
    if isinstance(content, dict) and "agentmark_public_key" in content:
        raise KeyFileError(str(Path(path)), "is a public key, which marks and reads nothing: see --public-key")
    return SharedKey.load(path)
