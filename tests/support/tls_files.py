"""A certificate authority for tests with processes, by the program openssl."""
import collections
import subprocess

# PEM files, as paths.
Files = collections.namedtuple("Files", "cert key ca")


def openssl(*arguments):
    subprocess.run(["openssl", *map(str, arguments)], check=True, capture_output=True, timeout=60)


class Authority:
    """Writes into `folder`; `name` tells authorities of one folder apart."""

    def __init__(self, folder, name):
        self.folder, self.name, self.issued = folder, name, 0
        self.ca, self._key = folder / f"{name}.pem", folder / f"{name}.key"
        openssl("req", "-x509", *self._new_key(self._key), "-days", "2", "-out", self.ca,
                "-subj", f"/CN={name}")

    @staticmethod
    def _new_key(path):
        return ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-keyout", path]

    def issue(self, days=2):
        """A certificate for 127.0.0.1 that is good for both sides of a connection."""
        self.issued += 1
        cert, key, request, extensions = (
            self.folder / f"{self.name}-{self.issued}.{kind}" for kind in ("pem", "key", "csr", "ext"))
        openssl("req", "-new", *self._new_key(key), "-out", request, "-subj", "/CN=127.0.0.1")
        extensions.write_text("subjectAltName=IP:127.0.0.1,DNS:localhost\n"
                              "extendedKeyUsage=serverAuth,clientAuth\n")
        openssl("x509", "-req", "-in", request, "-CA", self.ca, "-CAkey", self._key,
                "-CAcreateserial", "-days", str(days), "-extfile", extensions, "-out", cert)
        return Files(cert, key, self.ca)


def tls_flags(prefix, files):
    """Of `cairnd`: tls_flags("--cluster-tls", files)."""
    return [f"{prefix}-cert-file", files.cert, f"{prefix}-key-file", files.key,
            f"{prefix}-ca-file", files.ca]
