"""`agentmark gateway`: its options. What they ask for is loaded when it is done."""

import argparse
from typing import Any

from agentmark.cli.common import EXIT_DONE, file_name, new_command, printable, text

# Options that are settings of the gateway by the same name.
_SETTINGS = (
    "upstream",
    "key",
    "identity",
    "payload_len",
    "registry",
    "scheme",
    "store",
    "host",
    "port",
    "workers",
    "tenants",
    "mode",
    "samples",
    "granularity",
    "hosted_tools",
    "warm_cache",
    "fail",
    "max_request",
    "max_reply",
    "max_concurrent",
    "requests_per_minute",
    "receive_s",
    "upstream_s",
    "connect_s",
    "store_s",
    "keep_replies",
    "keep_days",
    "otlp_endpoint",
    "log_level",
)


def add_parser(commands: Any) -> None:
    parser = new_command(
        commands,
        "gateway",
        "Stand between agents and their model's API, and mark their decisions: change a base URL (docs/gateway.md).",
        "A setting of the file is overruled by the option of the same name. The keys and credentials of agents go\n"
        "through unread, or (with --tenants) are the gateway's own and exchanged for the upstream's.\n"
        "examples:\n"
        "  agentmark gateway --upstream https://api.openai.com --key key.json --identity acme --port 8790\n"
        "  agentmark gateway --upstream fake: --key key.json --identity acme      (offline, to try it)\n"
        "  agentmark gateway --config gateway.toml --workers 4",
    )
    parser.add_argument(
        "--config",
        type=file_name,
        metavar="FILE",
        help="settings in TOML, named as these options, and [[rules]] by model and path; options overrule them",
    )
    parser.add_argument(
        "--upstream", type=text, metavar="URL", help="where requests go; fake: (or fake:PROFILE) is a provider offline"
    )
    parser.add_argument("--key", type=file_name, metavar="FILE", help="the key that decisions are marked with")
    parser.add_argument("--identity", type=text, metavar="NAME", help="the identity that decisions carry")
    parser.add_argument("--payload-len", type=int, metavar="BITS", help="the length of an identity that is a number")
    parser.add_argument("--registry", type=file_name, metavar="FILE", help="the registry that names the identity")
    parser.add_argument("--scheme", help="F or R (default: the library's)")
    parser.add_argument(
        "--store", type=text, metavar="URL", help="a file, or postgresql://... for several gateways (agentmark.db)"
    )
    parser.add_argument("--host", type=text, help="where to listen (127.0.0.1); others need --tenants")
    parser.add_argument("--port", type=int, help="which port to listen on (8790; 0: any that is free)")
    parser.add_argument("--workers", type=int, metavar="N", help="processes that share the port and the store (1)")
    parser.add_argument(
        "--tenants", action="store_true", default=None, help="ask for API keys of the store's tenants, and go by them"
    )
    parser.add_argument(
        "--mode",
        choices=("proposals", "stated", "off"),
        help="how lists are had: samples of the reply itself, or a question aside and a forced choice (proposals)",
    )
    parser.add_argument("--samples", type=int, metavar="N", help="how often each request is sent, for proposals (4)")
    parser.add_argument("--granularity", choices=("tool", "call"), help="what tells samples apart (tool)")
    parser.add_argument(
        "--hosted-tools", action="store_true", default=None, help="sample requests whose tools run at the provider too"
    )
    parser.add_argument(
        "--warm-cache",
        action="store_true",
        default=None,
        help="send the first of the samples ahead, so that the others find its prompt in the provider's cache",
    )
    parser.add_argument(
        "--fail",
        choices=("open", "closed"),
        help="what a failure of the mark or the store costs: the mark (open), or the request (closed)",
    )
    limits = parser.add_argument_group("limits")
    limits.add_argument("--max-request", type=int, metavar="BYTES", help="the largest request (64 MiB)")
    limits.add_argument("--max-reply", type=int, metavar="BYTES", help="the largest reply that is sampled (64 MiB)")
    limits.add_argument("--max-concurrent", type=int, metavar="N", help="requests at once, for each worker (1024)")
    limits.add_argument("--requests-per-minute", type=int, metavar="N", help="for each tenant and worker (no limit)")
    limits.add_argument("--receive-s", type=float, metavar="SECONDS", help="how long a request may pause (60)")
    limits.add_argument("--upstream-s", type=float, metavar="SECONDS", help="how long the upstream may take (600)")
    limits.add_argument("--connect-s", type=float, metavar="SECONDS", help="how long a connection may take (10)")
    limits.add_argument("--store-s", type=float, metavar="SECONDS", help="how long the store may take (5)")
    kept = parser.add_argument_group("what is kept")
    kept.add_argument(
        "--keep-replies", type=float, metavar="SECONDS", help="replies, for a retry with the same Idempotency-Key (300)"
    )
    kept.add_argument("--keep-days", type=float, metavar="DAYS", help="records (until somebody deletes them)")
    seen = parser.add_argument_group("what is seen")
    seen.add_argument("--otlp-endpoint", type=text, metavar="URL", help="where spans and metrics go (extra otlp)")
    seen.add_argument("--log-level", choices=("debug", "info", "warning", "error"), help="(info)")
    # A worker's share of the socket; given by the process that started it.
    parser.add_argument("--socket", type=int, help=argparse.SUPPRESS)
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    from agentmark.gateway.logs import set_up_logs
    from agentmark.gateway.settings import read_settings

    given = {name: getattr(arguments, name) for name in _SETTINGS}
    settings = read_settings(arguments.config, given)
    set_up_logs(settings.log_level)

    from agentmark.gateway.callers import Callers
    from agentmark.gateway.metrics import GatewayLedger, Metrics
    from agentmark.gateway.serve import (
        fake_upstreams,
        inherited,
        listen,
        run_worker,
        run_workers,
        url_of,
        worker_command,
    )

    if arguments.socket is not None:
        run_worker(settings, inherited(arguments.socket), lambda: None)
        return EXIT_DONE
    listening = listen(settings)

    def ready() -> None:
        where = "; no tenants, so the loopback only" if not settings.tenants else ""
        print(f"agentmark gateway at {url_of(listening)}, upstream {printable(settings.upstream)}{where}", flush=True)

    with listening, fake_upstreams(settings) as started:
        if settings.workers == 1:
            run_worker(started, listening, ready)
            return EXIT_DONE
        # What is wrong with the keys is said once, here, and not by every worker.
        Callers(started, GatewayLedger(Metrics()))
        words = ["gateway", *_words(arguments)]
        if started.upstream != settings.upstream:
            words += ["--upstream", started.upstream]
        return run_workers(started, listening, worker_command(words), ready)


def _words(arguments: argparse.Namespace) -> list[str]:
    """The options as they were given, for a worker."""
    words: list[str] = []
    for name in ("config", *_SETTINGS):
        value = getattr(arguments, name)
        if value is None:
            continue
        option = f"--{name.replace('_', '-')}"
        words += [option] if value is True else [f"{option}={value}"]
    return words
