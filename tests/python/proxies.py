"""nginx before a server, with the location that the manual shows."""

from __future__ import annotations

import os
import re
import shutil
import socket
import subprocess
import tempfile
from typing import Tuple

from support import poll_until

MANUAL = os.path.join(
    os.path.dirname(os.path.abspath(__file__)), "../../tools/manual/monitoring.md"
)
NGINX = shutil.which("nginx", path=os.environ["PATH"] + ":/usr/sbin")
NO_NGINX = "skipped: Debian's nginx is not installed; tools/dev test --browser installs it"
USER = ("operator", "secret")


def recipe() -> str:
    """The first block of the manual that is of nginx."""
    with open(MANUAL) as file:
        found = re.search(r"^    location .*?^    }$", file.read(), re.M | re.S)
    assert found is not None
    return found[0]


class Nginx:
    """Serves until it is removed; `location` may be another than the manual's."""

    def __init__(self, target: Tuple[str, int], location: str = "", **replaced: str) -> None:
        self._dir = tempfile.mkdtemp(prefix="nowcalls-nginx-")
        with socket.create_server(("127.0.0.1", 0)) as free:
            self.address = ("127.0.0.1", int(free.getsockname()[1]))
        location = location or recipe()
        for old, new in {
            "127.0.0.1:18731": f"{target[0]}:{target[1]}",
            "/etc/nginx/nowcalls.htpasswd": f"{self._dir}/users",
            **replaced,
        }.items():
            location = location.replace(old, new)
        with open(os.path.join(self._dir, "users"), "w") as file:
            file.write(f"{USER[0]}:{{PLAIN}}{USER[1]}\n")
        with open(os.path.join(self._dir, "nginx.conf"), "w") as file:
            file.write(
                f"pid {self._dir}/pid; error_log {self._dir}/log; daemon off;\n"
                "events {}\n"
                f"http {{ access_log off; client_body_temp_path {self._dir}/body;\n"
                f"proxy_temp_path {self._dir}/proxy; fastcgi_temp_path {self._dir}/fastcgi;\n"
                f"uwsgi_temp_path {self._dir}/uwsgi; scgi_temp_path {self._dir}/scgi;\n"
                f"server {{ listen {self.address[0]}:{self.address[1]};\n{location}\n}} }}\n"
            )
        # Its workers have another user.
        os.chmod(self._dir, 0o755)
        assert NGINX is not None
        self._process = subprocess.Popen(
            [NGINX, "-c", f"{self._dir}/nginx.conf", "-p", self._dir], stderr=subprocess.DEVNULL
        )
        assert poll_until(self._is_up), self.log()

    def _is_up(self) -> bool:
        try:
            socket.create_connection(self.address).close()
        except OSError:
            return False
        return True

    def log(self) -> str:
        try:
            with open(os.path.join(self._dir, "log")) as file:
                return file.read()
        except OSError:
            return ""

    def remove(self) -> None:
        self._process.terminate()
        self._process.wait()
        shutil.rmtree(self._dir)
