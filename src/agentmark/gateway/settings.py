"""The settings of a gateway, read in one place: defaults, a TOML file, and what the command line says on top."""

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from fnmatch import fnmatchcase
from ipaddress import ip_address
from math import inf
from pathlib import Path
from typing import Any, Literal, get_args
from urllib.parse import urlsplit

from agentmark.elicit.proposals import DEFAULT_COUNT, Granularity, Proposals
from agentmark.errors import SettingError
from agentmark.files import read_small_file
from agentmark.gateway.paths import as_servers_read

Mode = Literal["proposals", "stated", "off"]
Fail = Literal["open", "closed"]
# Where the fake provider is asked for: "fake:", or "fake:PROFILE" with one of its profiles.
FAKE = "fake:"
MAX_SETTINGS_SIZE = 1 << 20
_LOCAL_NAMES = ("localhost",)
_ABOVE_ZERO = (
    "workers",
    "max_request",
    "max_reply",
    "max_concurrent",
    "requests_per_minute",
    "receive_s",
    "upstream_s",
    "connect_s",
    "store_s",
    "keep_days",
)
# What is more was not meant, and would take the machine down, or overflow a clock.
_MOST_SECONDS = 30 * 86400
_AT_MOST = {
    "workers": 256,
    "max_concurrent": 1_000_000,
    "requests_per_minute": 10**9,
    "max_request": 1 << 40,
    "max_reply": 1 << 40,
    "receive_s": _MOST_SECONDS,
    "upstream_s": _MOST_SECONDS,
    "connect_s": _MOST_SECONDS,
    "store_s": _MOST_SECONDS,
    "keep_days": 100 * 366,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Rule:
    """How requests for some models, or on some paths, are treated. Patterns as in a shell: `claude-*`."""

    model: str = "*"
    path: str = "*"
    # None: as the gateway does.
    upstream: str | None = None
    mode: Mode | None = None
    samples: int | None = None
    granularity: Granularity | None = None
    hosted_tools: bool | None = None
    warm_cache: bool | None = None

    def is_for(self, path: str, model: str) -> bool:
        if not fnmatchcase(model, self.model):
            return False
        return fnmatchcase(path, self.path) or fnmatchcase(as_servers_read(path), self.path)


@dataclass(frozen=True, slots=True, kw_only=True)
class Way:
    """What the rules come to for one request."""

    upstream: str
    mode: Mode
    proposals: Proposals


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """Everything that a gateway can be told. Names are those of the TOML file and, with dashes, of the options."""

    upstream: str
    key: str | None = None
    identity: str | None = None
    # How long the identity is, in bits, where it is a number or text and no registry names it.
    payload_len: int | None = None
    registry: str | None = None
    scheme: str | None = None
    store: str = "agentmark.db"
    host: str = "127.0.0.1"
    port: int = 8790
    workers: int = 1
    tenants: bool = False
    mode: Mode = "proposals"
    samples: int = DEFAULT_COUNT
    granularity: Granularity = "tool"
    hosted_tools: bool = False
    warm_cache: bool = False
    fail: Fail = "open"
    rules: tuple[Rule, ...] = field(default=())
    # Limits. Sizes in bytes.
    max_request: int = 64 * 1024 * 1024
    max_reply: int = 64 * 1024 * 1024
    max_concurrent: int = 1024
    requests_per_minute: int | None = None
    receive_s: float = 60.0
    upstream_s: float = 600.0
    connect_s: float = 10.0
    store_s: float = 5.0
    # How long a reply is kept for a client that asks again with the same Idempotency-Key; 0: not at all.
    keep_replies: float = 300.0
    # How long records are kept; None: until somebody deletes them.
    keep_days: float | None = None
    otlp_endpoint: str | None = None
    log_level: str = "info"

    def __post_init__(self) -> None:
        check_upstream(self.upstream)
        for rule in self.rules:
            if rule.upstream is not None:
                check_upstream(rule.upstream)
        for name in _ABOVE_ZERO:
            value = getattr(self, name)
            if value is not None and not 0 < value < inf:
                raise SettingError(name, "is not a number above zero")
        for name, most in _AT_MOST.items():
            value = getattr(self, name)
            if value is not None and value > most:
                raise SettingError(name, f"is more than {most:,}")
        if not 0 <= self.port <= 65535:
            raise SettingError("port", "is not from 0 to 65535")
        if not 0 <= self.keep_replies <= _MOST_SECONDS:
            raise SettingError("keep_replies", f"is not from 0 to {_MOST_SECONDS:,} seconds")
        # Refuses what cannot be meant.
        self.way("", "")
        if not self.tenants:
            self._check_open()

    def _check_open(self) -> None:
        """A gateway without tenants answers everyone who reaches it."""
        if self.identity is None:
            raise SettingError("identity", "is missing: whose decisions are they? (or --tenants)")
        if not is_loopback(self.host):
            raise SettingError(
                "host",
                f"{self.host}: a gateway without tenants would be open to everyone who reaches it, and listens on"
                " the loopback only; use --tenants, or put a proxy that knows its clients in front",
            )

    def way(self, path: str, model: str) -> Way:
        """How a request is treated: the first rule that is for it says, and the settings where it is silent."""
        rule = next((rule for rule in self.rules if rule.is_for(path, model)), Rule())
        return Way(
            upstream=rule.upstream or self.upstream,
            mode=rule.mode or self.mode,
            proposals=Proposals(
                count=rule.samples or self.samples,
                granularity=rule.granularity or self.granularity,
                hosted_tools=self.hosted_tools if rule.hosted_tools is None else rule.hosted_tools,
                warm_cache=self.warm_cache if rule.warm_cache is None else rule.warm_cache,
            ),
        )

    def with_upstream(self, names: Mapping[str, str]) -> "Settings":
        """The same with upstreams replaced: the fake ones, by where they listen."""
        rules = tuple([replace(rule, upstream=names.get(rule.upstream or "", rule.upstream)) for rule in self.rules])
        return replace(self, upstream=names.get(self.upstream, self.upstream), rules=rules)

    @property
    def upstreams(self) -> list[str]:
        """Every upstream that is named, each once."""
        named = [self.upstream, *[rule.upstream for rule in self.rules if rule.upstream is not None]]
        return list(dict.fromkeys(named))


def read_settings(path: str | Path | None, given: Mapping[str, Any]) -> Settings:
    """Settings of a TOML file, if there is one, under those that were given otherwise (None: not given)."""
    said: dict[str, Any] = {} if path is None else _file_settings(Path(path))
    said |= {name: value for name, value in given.items() if value is not None}
    if "upstream" not in said:
        raise SettingError("upstream", "is missing: where do the agent's requests go?")
    return Settings(**said)


def check_upstream(upstream: str) -> None:
    """Refuse what is no upstream. What was typed is not quoted if it may hold a password."""
    if upstream.startswith(FAKE):
        return
    try:
        parts = urlsplit(upstream)
        _ = parts.port
    except ValueError:
        parts = urlsplit("")
    # What is no plain text would be passed over by whoever takes the URL apart, and stand in each request all the same.
    is_plain = upstream.isprintable() and " " not in upstream
    if not is_plain or parts.scheme not in ("http", "https") or not parts.hostname or parts.query or parts.fragment:
        raise SettingError("upstream", "is no URL such as https://api.openai.com (or fake:)")
    if parts.username is not None or parts.password is not None:
        raise SettingError("upstream", "holds a credential; clients send theirs, or tenants have one")


def is_loopback(host: str) -> bool:
    if host in _LOCAL_NAMES:
        return True
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return False


def _file_settings(path: Path) -> dict[str, Any]:
    try:
        said = tomllib.loads(read_small_file(path, MAX_SETTINGS_SIZE).decode("utf-8"))
    except OSError as error:
        raise SettingError("config", f"{path} cannot be read: {error.strerror}") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise SettingError("config", f"{path}: {error}") from None
    rules = said.pop("rules", [])
    if not isinstance(rules, list) or not all(isinstance(rule, dict) for rule in rules):
        raise SettingError("rules", "is not a list of tables: write [[rules]]")
    _check_types(said, Settings, "")
    for rule in rules:
        _check_types(rule, Rule, "rules.")
    # Files are named from where the settings stand.
    for name in ("key", "registry"):
        if name in said:
            said[name] = str(path.parent / said[name])
    if "store" in said and "://" not in said["store"]:
        said["store"] = str(path.parent / said["store"])
    return {**said, "rules": tuple([Rule(**rule) for rule in rules])}


def _check_types(said: Mapping[str, Any], kind: type[Settings] | type[Rule], where: str) -> None:
    known = {member.name: member.type for member in fields(kind)}
    for name, value in said.items():
        if name not in known or name == "rules":
            raise SettingError(f"{where}{name}", "is no setting of the gateway")
        wanted = _types_of(known[name])
        if isinstance(wanted, tuple) and all(isinstance(option, str) for option in wanted):
            if value not in wanted:
                raise SettingError(f"{where}{name}", f"{value!r} is none of {', '.join(map(str, wanted))}")
        elif not isinstance(value, wanted) or (isinstance(value, bool) and bool not in _as_tuple(wanted)):
            raise SettingError(f"{where}{name}", f"{value!r} is of the wrong kind")


def _as_tuple(wanted: Any) -> tuple[Any, ...]:
    return wanted if isinstance(wanted, tuple) else (wanted,)


def _types_of(annotation: Any) -> Any:
    """The types, or the words, that a field of the settings takes."""
    options = [option for option in get_args(annotation) if option is not type(None)]
    if not options:
        return (int, float) if annotation is float else annotation
    if len(options) == 1:
        return _types_of(options[0])
    return tuple(options)
