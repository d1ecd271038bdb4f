"""Certificates of a test, made by openssl(1)."""

from __future__ import annotations

import functools
import os
import shutil
import ssl
import subprocess
import tempfile
from typing import List, Optional


class Authority:
    """A CA in a directory of its own. Files are PEM."""

    def __init__(self) -> None:
        self._dir = tempfile.mkdtemp(prefix="nowcalls-ca-")
        self.file = self.path("ca.pem")
        key = self._new_key("ca")
        subject = ["-subj", "/CN=Test CA"]
        _openssl("req", "-x509", "-key", key, "-out", self.file, "-days", "9", *subject)

    def path(self, name: str) -> str:
        return os.path.join(self._dir, name)

    @functools.lru_cache(maxsize=None)
    def issue(self, names: str, days: int = 9) -> List[str]:
        """[certificate, key]. names: subjectAltName, like "DNS:a.test,IP:127.0.0.1"."""
        stem = f"leaf-{len(os.listdir(self._dir))}"
        key, request = self._new_key(stem), self.path(f"{stem}.csr")
        certificate, extensions = self.path(f"{stem}.pem"), self.path(f"{stem}.ext")
        with open(extensions, "w") as file:
            file.write(f"subjectAltName={names}\n")
        # A common name counts for nothing.
        _openssl("req", "-new", "-key", key, "-out", request, "-subj", "/CN=common.test")
        _openssl(
            *("x509", "-req", "-in", request, "-out", certificate, "-days", str(days)),
            *("-CA", self.file, "-CAkey", self.path("ca.key"), "-CAcreateserial"),
            *("-extfile", extensions),
        )
        return [certificate, key]

    def server_context(
        self, names: str = "IP:127.0.0.1", days: int = 9, clients: Optional[str] = None
    ) -> ssl.SSLContext:
        """clients: CA whose client certificates are required."""
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(*self.issue(names, days))
        context.set_alpn_protocols(["nowcalls/1"])
        if clients is not None:
            context.load_verify_locations(clients)
            context.verify_mode = ssl.CERT_REQUIRED
        return context

    def remove(self) -> None:
        shutil.rmtree(self._dir)

    def _new_key(self, stem: str) -> str:
        key = self.path(f"{stem}.key")
        _openssl("genpkey", "-algorithm", "EC", "-pkeyopt", "ec_paramgen_curve:P-256", "-out", key)
        return key


def _openssl(*arguments: str) -> None:
    subprocess.run(["openssl", *arguments], check=True, stderr=subprocess.DEVNULL)
