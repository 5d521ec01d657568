"""Who calls: the one identity of a gateway without tenants, or the tenant whose API key a request shows."""

import os
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from agentmark.core.schemes import DEFAULT_SCHEME
from agentmark.decide.desk import Desk
from agentmark.decide.writing import PATIENCE_S
from agentmark.elicit.verbalised import Verbalised
from agentmark.embed.embedder import Embedder
from agentmark.errors import SettingError
from agentmark.gateway.errors import GatewayError
from agentmark.gateway.headers import bearer
from agentmark.gateway.limits import Limit
from agentmark.gateway.metrics import GatewayLedger
from agentmark.gateway.settings import Settings, Way
from agentmark.identity.registry import Registry
from agentmark.keys.environment import ENVIRONMENT_VARIABLE
from agentmark.keys.key import Key
from agentmark.keys.load import load_key
from agentmark.keys.shared import SharedKey
from agentmark.store.store import Store
from agentmark.store.tenants import OwnKey, Tenant
from agentmark.verify.verifier import Verifier

# Tenants whose keys and deciders are kept ready.
MAX_READY = 1000


@dataclass(slots=True)
class Caller:
    """Whose requests these are: with which key and identity they are marked, and what they may do."""

    # The tenant's name; empty where there are none.
    tenant: str
    key: Key
    embedder: Embedder
    # The identity by name, and as a verifier takes it.
    identity: str
    claim: int | str
    limit: Limit
    who: Tenant | None = None
    desks: dict[Way, Desk] = field(default_factory=dict)


class Callers:
    """Everyone who may call this gateway."""

    def __init__(self, settings: Settings, ledger: GatewayLedger) -> None:
        self._settings = settings
        self.ledger = ledger
        self._own = _own_key(settings)
        self.registry = None if settings.registry is None else Registry.load(settings.registry)
        self._ready: OrderedDict[Tenant, Caller] = OrderedDict()
        self._alone: Caller | None = None
        if not settings.tenants:
            if self._own is None or settings.identity is None:
                raise SettingError("key", "is missing: the key that decisions are marked with")
            limit = Limit(per_minute=settings.requests_per_minute, status=429)
            embedder = self._embedder(self._own, settings.identity)
            self._alone = Caller("", self._own, embedder, settings.identity, self._claim(settings.identity), limit)

    async def of(self, headers: Sequence[tuple[bytes, bytes]], store: Store) -> Caller:
        """Who shows this key. Without one, or with another, a `GatewayError` that says so and no more."""
        if self._alone is not None:
            return self._alone
        shown = bearer(headers)
        if shown is None:
            raise GatewayError(401, "no API key: send Authorization: Bearer amk_...", "no api key")
        tenant = await store.tenant_of(shown)
        if tenant is None:
            raise GatewayError(401, "this API key is not known", "unknown api key")
        caller = self._ready.get(tenant)
        if caller is None:
            caller = self._ready[tenant] = self._of_tenant(tenant)
            if len(self._ready) > MAX_READY:
                self._ready.popitem(last=False)
        else:
            # Who was away longest goes first: a limit that is forgotten begins anew.
            self._ready.move_to_end(tenant)
        return caller

    def credential(self, caller: Caller) -> str | None:
        """What the upstream is shown in place of the client's key; None without tenants: then it is shown that."""
        if caller.who is None:
            return None
        try:
            found = caller.who.credential()
        except SettingError:
            raise GatewayError(503, "the upstream credential of this tenant cannot be read", "no credential") from None
        if found is None:
            # The client's key is the gateway's own, which no upstream must see.
            raise GatewayError(403, "this tenant has no upstream credential", "no credential")
        return found

    def desk(self, caller: Caller, way: Way) -> Desk:
        """The decider of a caller for one way of deciding."""
        desk = caller.desks.get(way)
        if desk is None:
            is_stated = way.mode == "stated"
            desk = caller.desks[way] = Desk(
                caller.embedder,
                Verbalised() if is_stated else way.proposals,
                None,
                fallback=way.proposals,
                fail=self._settings.fail,
                meta=None,
                patience_s=PATIENCE_S,
                ledger=self.ledger,
            )
        return desk

    def _of_tenant(self, tenant: Tenant) -> Caller:
        settings = self._settings
        try:
            key = tenant.key(self._own)
            embedder = self._embedder(key, tenant.identity)
        except Exception:
            raise GatewayError(
                503, "the key or identity of this tenant cannot be used", "tenant misconfigured"
            ) from None
        per_minute = tenant.requests_per_minute or settings.requests_per_minute
        limit = Limit(concurrent=tenant.concurrent_requests, per_minute=per_minute, status=429)
        return Caller(tenant.name, key, embedder, tenant.identity, self._claim(tenant.identity), limit, tenant)

    def verifier(self, caller: Caller) -> Verifier:
        """What judges a caller's records: under its own key."""
        length = None if self.registry is not None else caller.embedder.payload_len
        return Verifier(caller.key, payload_len=length, registry=self.registry)

    def _claim(self, identity: str) -> int | str:
        return identity if self.registry is not None else _payload(identity, self._settings.payload_len)

    def _embedder(self, key: Key, identity: str) -> Embedder:
        settings = self._settings
        return Embedder(
            key,
            self._claim(identity),
            payload_len=settings.payload_len if self.registry is None else None,
            scheme=settings.scheme or DEFAULT_SCHEME,
            registry=self.registry,
            # Session, step and request: nothing private, and whoever reads the log can see that they belong together.
            keep_context=True,
        )


def _own_key(settings: Settings) -> "OwnKey | None":
    if settings.key is not None:
        loaded: OwnKey = load_key(settings.key)  # type: ignore[assignment]
        return loaded
    if settings.tenants and not os.environ.get(ENVIRONMENT_VARIABLE):
        # Tenants may have keys of their own. A variable that is set and holds no key is refused all the same.
        return None
    return SharedKey.from_environment()


def meta_of(caller: Caller) -> Mapping[str, str]:
    """What every record says of who called."""
    return {"tenant": caller.tenant} if caller.tenant else {}


def _payload(identity: str, payload_len: int | None) -> int | str:
    """Without a registry an identity is text, or a number where its length is said."""
    if payload_len is None:
        return identity
    try:
        return int(identity) if identity.isdigit() else int(identity, 0)
    except ValueError:
        return identity
