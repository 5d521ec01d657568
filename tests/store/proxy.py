"""A way to a server that can be cut: it passes bytes on, or hangs up, or swallows what comes."""

import socket
import threading
from contextlib import suppress


class Proxy:
    """Listens on a port of its own, and connects each caller to the server's."""

    def __init__(self, port: int) -> None:
        self._target = port
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port = self._listener.getsockname()[1]
        self._pairs: list[socket.socket] = []
        self._refuses = False
        self._passes = threading.Event()
        self._passes.set()
        threading.Thread(target=self._accept, daemon=True).start()

    def cut(self) -> None:
        """Hang up on everyone, and take no new calls."""
        self._refuses = True
        self._hang_up()

    def mend(self) -> None:
        self._refuses = False
        self._passes.set()

    def swallow(self) -> None:
        """Nothing is passed on any more, and nobody is told."""
        self._passes.clear()

    def close(self) -> None:
        self._refuses = True
        self._passes.set()
        self._listener.close()
        self._hang_up()

    def _hang_up(self) -> None:
        for end in self._pairs:
            with suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)
            end.close()
        self._pairs.clear()

    def _accept(self) -> None:
        while True:
            try:
                client, _ = self._listener.accept()
            except OSError:
                return
            if self._refuses:
                client.close()
                continue
            server = socket.create_connection(("127.0.0.1", self._target))
            self._pairs += [client, server]
            for source, target in ((client, server), (server, client)):
                threading.Thread(target=self._pass_on, args=(source, target), daemon=True).start()

    def _pass_on(self, source: socket.socket, target: socket.socket) -> None:
        with suppress(OSError):
            while data := source.recv(1 << 16):
                self._passes.wait()
                target.sendall(data)
        for end in (source, target):
            with suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)
