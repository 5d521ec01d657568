"""How much a log may ask of the machine that reads it: a small file must not fill the memory, nor keep it busy.

What was measured of honest logs, and what the defaults leave room for, stands in docs/logs.md.
"""

import re
from collections.abc import Iterable
from dataclasses import dataclass, fields, replace
from typing import Self

from agentmark.core.errors import AgentMarkError
from agentmark.errors import SettingError
from agentmark.log.sizes import MAX_LINE, MAX_PARSED

MIB = 1 << 20
OPTION = "--limit"
_UNITS = {"": 1, "KiB": 1 << 10, "MiB": MIB, "GiB": 1 << 30}
_SETTING = re.compile(r"([a-z_]+)=([0-9]{1,15})(|KiB|MiB|GiB)")


class LimitError(AgentMarkError, RuntimeError):
    """A log asks for more than it may. Not a broken record: nothing passes over it, and no part is taken for a whole.

    `limit` is the setting of `Limits` that stopped it.
    """

    def __init__(self, where: str, fault: str, limit: str) -> None:
        super().__init__(
            f"{where}: {fault}. If you trust the file, raise the limit: {OPTION} {limit}=N, in Python Limits({limit}=N)"
        )
        self.where = where
        self.fault = fault
        self.limit = limit


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """The most that one log may ask for. What is counted for each byte is counted for those read from the disk."""

    # What has to be held at once, unpacked: a line, an item of an array, a document, a member of a zip file, a value
    # of a database, a row of Parquet. Text with one unusual letter takes four times as much in Python.
    held_bytes: int = MAX_LINE
    # What one of these may take as objects of Python, guessed from its brackets, commas and quotes before it is parsed.
    parsed_bytes: int = MAX_PARSED
    # What one file may unpack to in all, however large it is.
    unpacked_bytes: int = 64 << 30
    # What each byte of a file may unpack to.
    unpacked_ratio: int = 200
    # How many JSON values each byte of a file may make: a number or a name counts one, a list two, an object four,
    # a row twenty-four. No file that is not packed can go beyond it.
    values_per_byte: int = 16
    # How many records each KiB of a file may hold. A record has a digest of 32 bytes that no packer makes smaller;
    # copies of a record have not. One that takes more than RECORD_UNIT in memory counts as several.
    records_per_kib: int = 40

    def __post_init__(self) -> None:
        for setting in fields(self):
            value = getattr(self, setting.name)
            if type(value) is not int or value < 1:
                raise SettingError(setting.name, f"{value!r} is not a limit: a whole number from 1 on")

    @classmethod
    def from_settings(cls, settings: Iterable[str]) -> Self:
        """The defaults, but for settings such as `unpacked_ratio=500` or `held_bytes=64MiB`."""
        limits = cls()
        names = [setting.name for setting in fields(cls)]
        for setting in settings:
            found = _SETTING.fullmatch(setting)
            if found is None or found[1] not in names:
                raise SettingError(OPTION, f"{setting!r} is not NAME=NUMBER with a name of {', '.join(names)}")
            limits = replace(limits, **{found[1]: int(found[2]) * _UNITS[found[3]]})
        return limits

    def as_dict(self) -> dict[str, int]:
        return {setting.name: getattr(self, setting.name) for setting in fields(self)}

    def as_settings(self) -> list[str]:
        """Those that differ from the defaults, as `from_settings` takes them."""
        plain = type(self)()
        return [
            f"{setting.name}={getattr(self, setting.name)}"
            for setting in fields(self)
            if getattr(self, setting.name) != getattr(plain, setting.name)
        ]


DEFAULT_LIMITS = Limits()
