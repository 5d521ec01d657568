"""The gateway: an agent whose base URL points here is marked, in any language, with no change to its code.

agent --HTTP--> app (limits, tenants, routes) --other routes--> relay: byte for byte to the upstream
                 |  deciding routes
                 v
            deciding --call.GatewayCall, decide.turn.dialogue--> upstream, several times or forced
                 |       a decision is durable in the store before the first byte of its answer goes out
                 v
            the chosen reply, as the upstream sent it
"""
