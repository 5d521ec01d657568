"""`agentmark tenant`."""

import argparse
from pathlib import Path
from typing import TYPE_CHECKING, Any

from agentmark.cli.common import EXIT_DONE, file_name, new_command, print_json, printable, text
from agentmark.cli.store_options import add_store_argument, in_store, said_time

if TYPE_CHECKING:
    from agentmark.store.store import Store
    from agentmark.store.tenants import ApiKey, Tenant


def add_parser(commands: Any) -> None:
    parser = new_command(
        commands,
        "tenant",
        "Add, list or revoke the tenants of a gateway, and their API keys.",
        "examples:\n"
        "  agentmark tenant add store.db acme --identity acme --credential env:OPENAI_API_KEY\n"
        "  agentmark tenant list store.db\n"
        "  agentmark tenant key store.db acme\n"
        "  agentmark tenant revoke store.db acme",
    )
    actions = parser.add_subparsers(title="actions", metavar="ACTION", required=True)
    _add_add(actions)
    listed = new_command(actions, "list", "List the tenants, and what is known of their API keys.")
    add_store_argument(listed)
    listed.add_argument("--json", action="store_true", help="the same as JSON; times are seconds since 1970")
    listed.set_defaults(run=_list)
    key = new_command(actions, "key", "Issue another API key, and print it: the only time that it is seen.")
    _add_named(key)
    key.set_defaults(run=_key)
    revoke = new_command(actions, "revoke", "Revoke a tenant with all its API keys, or one of them.")
    _add_named(revoke)
    revoke.add_argument(
        "--api-key", type=text, metavar="ID", help="only this one: the digits behind amk_, as `list` shows them"
    )
    revoke.set_defaults(run=_revoke)


def _add_named(parser: argparse.ArgumentParser) -> None:
    add_store_argument(parser)
    parser.add_argument("name", type=text, metavar="NAME", help="the tenant")


def _add_add(actions: Any) -> None:
    parser = new_command(actions, "add", "Add a tenant, and print its first API key: the only time that it is seen.")
    _add_named(parser)
    parser.add_argument(
        "--identity",
        type=text,
        metavar="NAME",
        help="the identity that its decisions carry, in the registry of the gateway (default: the tenant's name)",
    )
    parser.add_argument(
        "--key-file",
        type=file_name,
        metavar="FILE",
        help="its own key, shared or with a public half (default: derived from the gateway's key by the tenant's name)",
    )
    parser.add_argument(
        "--credential",
        type=text,
        metavar="PLACE",
        help="where its credential for the upstream is, env:NAME or file:/PATH; never the credential itself "
        "(default: what the client sends)",
    )
    parser.add_argument("--requests-per-minute", type=int, metavar="N", help="default: the gateway's limit")
    parser.add_argument("--concurrent-requests", type=int, metavar="N", help="default: the gateway's limit")
    parser.set_defaults(run=_add)


def _add(arguments: argparse.Namespace) -> int:
    from agentmark.store.tenants import Tenant

    tenant = Tenant(
        name=arguments.name,
        identity=arguments.identity or arguments.name,
        # As the gateway will find it, wherever that is started.
        key_file=None if arguments.key_file is None else str(Path(arguments.key_file).absolute()),
        upstream_credential=arguments.credential,
        requests_per_minute=arguments.requests_per_minute,
        concurrent_requests=arguments.concurrent_requests,
    )

    async def add(store: "Store") -> str:
        await store.add_tenant(tenant)
        return await store.issue_api_key(tenant.name)

    # The first tenants are often entered before the gateway is first started.
    print(in_store(arguments, add, make=True))
    return EXIT_DONE


def _key(arguments: argparse.Namespace) -> int:
    print(in_store(arguments, lambda store: store.issue_api_key(arguments.name)))
    return EXIT_DONE


def _revoke(arguments: argparse.Namespace) -> int:
    async def revoke(store: "Store") -> str:
        if arguments.api_key is None:
            await store.revoke_tenant(arguments.name)
            return str(arguments.name)
        await store.revoke_api_key(arguments.api_key, tenant=arguments.name)
        return f"API key {arguments.api_key} of {arguments.name}"

    print(printable(f"revoked: {in_store(arguments, revoke)}"))
    return EXIT_DONE


def _list(arguments: argparse.Namespace) -> int:
    async def look(store: "Store") -> "list[tuple[Tenant, list[ApiKey]]]":
        keys = await store.api_keys()
        return [(tenant, [key for key in keys if key.tenant == tenant.name]) for tenant in await store.tenants()]

    found = in_store(arguments, look)
    if arguments.json:
        print_json([_as_dict(tenant, keys) for tenant, keys in found], indent=2)
        return EXIT_DONE
    for tenant, keys in found:
        revoked = "" if tenant.revoked_at is None else f"  revoked {said_time(tenant.revoked_at)}"
        print(printable(f"{said_time(tenant.created_at)}  {tenant.name}  identity {tenant.identity}{revoked}"))
        for key in keys:
            gone = "" if key.revoked_at is None else f"  revoked {said_time(key.revoked_at)}"
            print(f"  API key {key.id}  {said_time(key.created_at)}{gone}")
    return EXIT_DONE


def _as_dict(tenant: "Tenant", keys: "list[ApiKey]") -> dict[str, Any]:
    from dataclasses import asdict

    return {**asdict(tenant), "api_keys": [asdict(key) for key in keys]}
