"""`agentmark`, and `python -m agentmark`: where the process begins.

Ctrl-C is answered from the first line on, while most of the program is still being loaded.
"""

import os
import sys

# As in `agentmark.cli.common`, which is not loaded yet.
EXIT_INTERRUPTED = 130
# Objects.
COLLECT_EVERY = 100_000


def start() -> int:
    """The command as a process of its own."""
    # Python drops an interrupt that meets it in a finaliser, and prints where: an interrupt is an interrupt there too.
    sys.unraisablehook = _unraisable
    try:
        import gc

        # What a command reads it keeps to its end, and none of it in circles: Python need not look for them every 700
        # objects, over and over, which takes an eighth of reading a long log.
        gc.set_threshold(COLLECT_EVERY, 20, 20)
        from agentmark.cli.main import main

        status = main()
        _ignore_interrupts()
    except KeyboardInterrupt:
        _leave()
    except RuntimeError as error:
        # What Python makes of an interrupt that meets it where a class is made, in a module that is loaded.
        if isinstance(error.__cause__, KeyboardInterrupt):
            _leave()
        raise
    return status


def _ignore_interrupts() -> None:
    """All is said and written: what is left of the process takes no time, and its status is known."""
    import signal

    signal.signal(signal.SIGINT, signal.SIG_IGN)


def _unraisable(unraisable: "sys.UnraisableHookArgs") -> None:
    if issubclass(unraisable.exc_type, KeyboardInterrupt):
        _leave()
    sys.__unraisablehook__(unraisable)


def _leave() -> None:
    os.write(2, b"agentmark: interrupted\n")
    os._exit(EXIT_INTERRUPTED)


if __name__ == "__main__":
    sys.exit(start())
