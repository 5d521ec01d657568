"""A provider that refuses what today's providers refuse, with a small competent model behind it.

`profiles` says who refuses what, `provider` serves it; each API has a module that reads its requests into the one shape
of `conversation` and writes its replies. `policy` is the model, `questions` is how it recognises a question about its
own next step, and `errand` is a task it can do.

None of this uses `agentmark.wire`, which knows the same APIs: a mistake there must not be repeated here.
"""
