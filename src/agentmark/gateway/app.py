"""The gateway as an ASGI application: routes, who calls, limits, and what is answered when something goes wrong."""

import asyncio
import json
import logging
import re
import time
from collections.abc import Awaitable, Callable, Coroutine, MutableMapping
from typing import Any
from urllib.parse import unquote_to_bytes

from agentmark.gateway.callers import Caller, Callers
from agentmark.gateway.deciding import Background, Deciding
from agentmark.gateway.errors import ClientGoneError, GatewayError, broken_off
from agentmark.gateway.exchange import Answering, Asked, Receive, Scope, Send, knows_chunks
from agentmark.gateway.headers import API_KEY_BEGINNING, for_upstream
from agentmark.gateway.limits import Limit
from agentmark.gateway.metrics import GatewayLedger, Metrics, Names
from agentmark.gateway.paths import as_servers_read
from agentmark.gateway.relay import relay, url_at
from agentmark.gateway.settings import Settings
from agentmark.gateway.sidecar import Sidecar
from agentmark.gateway.telemetry import Telemetry
from agentmark.gateway.upstream import BrokenReplyError, Target, Upstreams
from agentmark.store.errors import StoreError
from agentmark.store.open import open_store
from agentmark.wire.apis import APIS, Api

# What answers a route of the sidecar.
OwnRoute = Callable[[Caller, bytes, Answering], Awaitable[None]]

logger = logging.getLogger("agentmark.gateway")

EXPIRE_EVERY_S = 3600.0
# The routes that decide: with and without a version, and behind whatever prefix a provider or a proxy has. Words that
# say less than "chat/completions" stand at the beginning, or behind a version or Azure's deployment: threads have
# messages too.
_DECIDING = re.compile(
    r"(?:/.*)?(/chat/completions)|(?:/openai|(?:/.*)?/v\d[^/]*)?(?:/openai/deployments/[^/]+)?(/responses|/messages)"
)


def api_at(method: str, path: str) -> Api | None:
    """The API of a deciding route; None for every other. A path that some server may read as such a route is one: it is
    sent on as it was written, and an agent would go unmarked without a word (law L12)."""
    if method != "POST":
        return None
    found = _DECIDING.fullmatch(path) or _DECIDING.fullmatch(as_servers_read(path).lower())
    return None if found is None else APIS[f"/v1{found[1] or found[2]}"]


class Gateway:
    """One worker: an ASGI application with a store and connections of its own."""

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        self.metrics = Metrics()
        self.store = open_store(settings.store, patience_s=settings.store_s)
        self.upstreams = Upstreams(
            connect_s=settings.connect_s, silence_s=settings.upstream_s, max_reply=settings.max_reply
        )
        self.callers = Callers(settings, GatewayLedger(self.metrics))
        self.background = Background()
        self.telemetry = Telemetry(settings.otlp_endpoint)
        names = Names()
        self.deciding = Deciding(
            settings,
            self.callers,
            self.store,
            self.upstreams,
            self.metrics,
            names=names,
            background=self.background,
            telemetry=self.telemetry,
        )
        self.sidecar = Sidecar(settings, self.callers, self.store, self.metrics, names=names)
        self._expiring: asyncio.Task[None] | None = None
        self._checking: asyncio.Task[None] | None = None
        self._limit = Limit(concurrent=settings.max_concurrent, status=503)
        self._own_routes = {"/healthz": self._health, "/readyz": self._ready, "/metrics": self._metrics}

    async def start(self) -> None:
        await self.store.start()
        await self.upstreams.start()
        if self.settings.keep_days is not None:
            self._expiring = asyncio.create_task(self._expire(self.settings.keep_days * 86400.0))

    async def close(self) -> None:
        if self._expiring is not None:
            self._expiring.cancel()
        await self.background.finish()
        await self.upstreams.close()
        await self.store.close()
        await asyncio.to_thread(self.telemetry.close)

    async def _expire(self, kept_s: float) -> None:
        """Delete what is older than it may be, again and again."""
        while True:
            try:
                await self.store.expire(time.time() - kept_s)
            except StoreError as error:
                logger.error("the store failed: %s", error)
            await asyncio.sleep(min(EXPIRE_EVERY_S, kept_s))

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await self._live(receive, send)
        elif scope["type"] == "http":
            await self._answer(scope, receive, send)

    async def _live(self, receive: Receive, send: Send) -> None:
        while True:
            message = await receive()
            if message["type"] == "lifespan.startup":
                await self.start()
                await send({"type": "lifespan.startup.complete"})
            elif message["type"] == "lifespan.shutdown":
                await self.close()
                await send({"type": "lifespan.shutdown.complete"})
                return

    async def _answer(self, scope: Scope, receive: Receive, send: Send) -> None:
        settings = self.settings
        asked = Asked(scope, receive, most=settings.max_request, patience_s=settings.receive_s)
        out = Answering(send, knows_chunks=knows_chunks(scope), most=settings.max_reply)
        own = self._own_routes.get(asked.path) if asked.method in ("GET", "HEAD") else None
        if own is not None:
            await own(out)
            return
        begun = time.perf_counter()
        api = api_at(asked.method, asked.path)
        own_route = self.sidecar.routes.get(asked.path) if asked.method == "POST" else None
        route = api.PATH if api is not None else asked.path if own_route is not None else "(other)"
        self.metrics.in_flight.inc()
        try:
            with self._limit.one(), self.telemetry.request(route, asked.headers) as span:
                await self._pass(asked, api, own_route, out)
                if span is not None:
                    span.set_attribute("http.response.status_code", out.status or 0)
        except GatewayError as error:
            self.metrics.errors.labels(error.reason).inc()
            await self._refuse(error, asked, out)
        except ClientGoneError:
            self.metrics.errors.labels("client gone").inc()
        except BrokenReplyError:
            self.metrics.errors.labels("upstream broke off").inc()
            if out.is_begun:
                raise
            await self._refuse(broken_off(), asked, out)
        finally:
            self.metrics.in_flight.dec()
            self.metrics.requests.labels(route, str(out.status or 0)).inc()
            self._log(asked.method, route, out, time.perf_counter() - begun)

    async def _pass(self, asked: Asked, api: Api | None, own_route: OwnRoute | None, out: Answering) -> None:
        caller = await self._caller(asked)
        with caller.limit.one():
            asked.check()
            if caller.who is not None and API_KEY_BEGINNING in unquote_to_bytes(asked.target):
                raise GatewayError(400, "an API key of the gateway's stands in the path or the query", "key in path")
            if own_route is not None:
                await own_route(caller, await asked.whole(), out)
                return
            if api is None:
                way = self.settings.way(asked.path, "")
                headers = for_upstream(asked.headers, is_read=False, credential=self.callers.credential(caller))
                target = Target(url_at(way.upstream, asked.target), headers, way.upstream)
                await _while_asked(asked, relay(asked, out, self.upstreams, target))
                return
            raw = await asked.whole()
            await _while_asked(asked, self.deciding.answer(asked, api, caller, raw, out))

    async def _caller(self, asked: Asked) -> Caller:
        try:
            return await self.callers.of(asked.headers, self.store)
        except StoreError:
            raise GatewayError(503, "the store does not answer", "store", retry_after_s=1) from None

    async def _refuse(self, error: GatewayError, asked: Asked, out: Answering) -> None:
        if out.is_begun:
            # Too late for words: the connection is cut, so that nobody takes what came for the whole.
            raise error
        await out.whole(error.status, error.headers(), error.body(is_anthropic=asked.is_anthropic))

    def _log(self, method: str, route: str, out: Answering, seconds: float) -> None:
        if logger.isEnabledFor(logging.INFO):
            said = {"method": method, "route": route, "status": out.status, "ms": round(seconds * 1000, 2)}
            logger.info("request", extra={"fields": said})

    # --- the gateway's own routes ---

    async def _health(self, out: Answering) -> None:
        await _say(out, 200, {"status": "ok"})

    async def _ready(self, out: Answering) -> None:
        if self._checking is None or self._checking.done():
            # One for all that ask at once: whoever asks needs no key, and must not fill the store's line.
            self._checking = asyncio.create_task(self.store.check())
        try:
            await asyncio.shield(self._checking)
        except StoreError as error:
            await _say(out, 503, {"status": "not ready", "store": error.fault})
            return
        await _say(out, 200, {"status": "ready"})

    async def _metrics(self, out: Answering) -> None:
        content, kind = self.metrics.page()
        await out.whole(200, [(b"content-type", kind.encode("latin-1"))], content)


async def _while_asked(asked: Asked, answer: Coroutine[Any, Any, None]) -> None:
    """Answer, unless the client hangs up: then what is done for it is ended."""
    work = asyncio.ensure_future(answer)
    watch = asyncio.ensure_future(asked.until_gone())
    try:
        await asyncio.wait([work, watch], return_when=asyncio.FIRST_COMPLETED)
        if not work.done():
            work.cancel()
            await asyncio.wait([work])
            if work.cancelled():
                raise ClientGoneError
        await work
    finally:
        watch.cancel()
        work.cancel()


async def _say(out: Answering, status: int, content: MutableMapping[str, Any]) -> None:
    await out.whole(status, [(b"content-type", b"application/json")], json.dumps(content).encode())
