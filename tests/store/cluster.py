"""A PostgreSQL server of a test's own: its folder, its port, its process. Debian's `postgresql` brings the programs."""

import os
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from pathlib import Path

MISSING = "PostgreSQL is not installed: no `initdb` in the path or under /usr/lib/postgresql"
READY_S = 60.0


def programs() -> Path | None:
    """The folder of the server's programs; None where there is no server."""
    found = shutil.which("initdb")
    if found is not None:
        return Path(found).resolve().parent
    folders = sorted(Path("/usr/lib/postgresql").glob("*/bin/initdb"), key=lambda path: path.parts[-3].zfill(4))
    return folders[-1].parent if folders else None


class Cluster:
    """Started and stopped at will. The server refuses to run as root: then it runs as the user `postgres`."""

    def __init__(self) -> None:
        found = programs()
        if found is None:
            raise RuntimeError(MISSING)
        self._programs = found
        self._user = "postgres" if os.geteuid() == 0 else None
        self.folder = Path(tempfile.mkdtemp(prefix="agentmark-pg-"))
        self.folder.chmod(0o755)
        self._data = self.folder / "data"
        self._data.mkdir(mode=0o700)
        self.give_to_server(self._data)
        self.port = _free_port()
        self._server: subprocess.Popen[bytes] | None = None
        self._run("initdb", "--pgdata", self._data, "--username=owner", "--auth=trust", "--encoding=UTF8", "--no-sync")

    @property
    def url(self) -> str:
        return self.url_of("owner", "postgres")

    def url_of(self, user: str, database: str) -> str:
        return f"postgresql://{user}@127.0.0.1:{self.port}/{database}"

    def start(self, **settings: object) -> None:
        options = {
            "listen_addresses": "127.0.0.1",
            "port": self.port,
            "unix_socket_directories": "",
            "shared_buffers": "16MB",
            "max_connections": 30,
            **settings,
        }
        words = [word for name, value in options.items() for word in ("-c", f"{name}={value}")]
        with (self.folder / "server.log").open("ab") as log:
            self._server = subprocess.Popen(
                [self._programs / "postgres", "-D", self._data, *words],
                stdout=log,
                stderr=log,
                stdin=subprocess.DEVNULL,
                cwd="/",
                **self._as_user(),
            )
        deadline = time.monotonic() + READY_S
        while not self._is_ready():
            if self._server.poll() is not None or time.monotonic() > deadline:
                raise RuntimeError((self.folder / "server.log").read_text(errors="replace")[-2000:])
            time.sleep(0.05)

    def stop(self, how: signal.Signals = signal.SIGINT) -> None:
        """SIGINT ends all connections and shuts down; SIGQUIT leaves everything as a crash would."""
        if self._server is not None:
            self._server.send_signal(how)
            self._server.wait(READY_S)
            self._server = None

    def signal_all(self, which: signal.Signals) -> None:
        """Freeze or wake the server with everything it started."""
        assert self._server is not None
        family = subprocess.run(
            ["ps", "-o", "pid=", "--ppid", str(self._server.pid)], capture_output=True, check=False
        ).stdout.split()
        for process in [self._server.pid, *map(int, family)]:
            os.kill(process, which)

    @property
    def is_running(self) -> bool:
        return self._server is not None

    def execute(self, statement: str, *, user: str = "owner", database: str = "postgres") -> list[tuple[object, ...]]:
        """What a statement gives, as somebody with a client of their own would run it."""
        import psycopg

        with psycopg.connect(self.url_of(user, database), autocommit=True) as connection:
            cursor = connection.execute(statement.encode())
            return cursor.fetchall() if cursor.description else []

    def give_to_server(self, folder: Path) -> None:
        """Make a folder that of the user whom the server runs as."""
        if self._user:
            shutil.chown(folder, self._user, self._user)

    def remove(self) -> None:
        self.stop()
        shutil.rmtree(self.folder, ignore_errors=True)

    def _is_ready(self) -> bool:
        words = ["pg_isready", "--host=127.0.0.1", f"--port={self.port}", "--quiet"]
        return subprocess.run([self._programs / words[0], *words[1:]], check=False).returncode == 0

    def _run(self, program: str, *words: object) -> None:
        subprocess.run(
            [self._programs / program, *map(str, words)], check=True, capture_output=True, cwd="/", **self._as_user()
        )

    def _as_user(self) -> dict[str, object]:
        return {"user": self._user, "group": self._user, "extra_groups": []} if self._user else {}


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])
