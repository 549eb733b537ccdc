# SPDX-License-Identifier: Apache-2.0
"""Certificates of the control plane and of the kubelets, made anew for every sandbox."""

import base64
import json
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from ipaddress import ip_address
from typing import Final

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

_DAYS: Final = 365
_CLOCK_SKEW: Final = timedelta(minutes=5)


@dataclass(frozen=True, slots=True)
class Pair:
    """A certificate and its key, both PEM."""

    certificate: str
    key: str


class Authority:
    """A certificate authority that lives as long as this object; `certificate` is its own, PEM."""

    def __init__(self, now: datetime | None = None) -> None:
        self._now = now or datetime.now(UTC)
        self._key = ec.generate_private_key(ec.SECP256R1())
        self._name = _name("cgpu-sandbox")
        signed = (
            self._draft(self._name, self._key)
            .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
            .add_extension(x509.SubjectKeyIdentifier.from_public_key(self._key.public_key()), critical=False)
            .sign(self._key, hashes.SHA256())
        )
        self.certificate = signed.public_bytes(serialization.Encoding.PEM).decode()

    def key(self) -> str:
        """The authority's key, PEM: the controller manager signs with it."""
        return _pem(self._key)

    def issue(self, common_name: str, organization: str = "", names: tuple[str, ...] = ()) -> Pair:
        """A pair for server and client use. `names`: DNS names and addresses of the server."""
        key = ec.generate_private_key(ec.SECP256R1())
        draft = self._draft(_name(common_name, organization), key).add_extension(
            x509.ExtendedKeyUsage([ExtendedKeyUsageOID.SERVER_AUTH, ExtendedKeyUsageOID.CLIENT_AUTH]), critical=False
        )
        if names:
            draft = draft.add_extension(x509.SubjectAlternativeName([_general_name(n) for n in names]), critical=False)
        signed = draft.sign(self._key, hashes.SHA256())
        return Pair(signed.public_bytes(serialization.Encoding.PEM).decode(), _pem(key))

    def _draft(self, subject: x509.Name, key: ec.EllipticCurvePrivateKey) -> x509.CertificateBuilder:
        return (
            x509.CertificateBuilder()
            .subject_name(subject)
            .issuer_name(self._name)
            .public_key(key.public_key())
            .serial_number(x509.random_serial_number())
            .not_valid_before(self._now - _CLOCK_SKEW)
            .not_valid_after(self._now + timedelta(days=_DAYS))
        )


def signing_key() -> Pair:
    """The pair that service account tokens are signed with; `certificate` is the bare public key."""
    key = ec.generate_private_key(ec.SECP256R1())
    public = key.public_key().public_bytes(serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo)
    return Pair(public.decode(), _pem(key))


def kubeconfig(server: str, authority: str, user: Pair) -> str:
    """A kubeconfig that stands alone: certificates are inside (JSON is YAML)."""
    credentials = {"client-certificate-data": _base64(user.certificate), "client-key-data": _base64(user.key)}
    return json.dumps(
        {
            "apiVersion": "v1",
            "kind": "Config",
            "clusters": [
                {"name": "cgpu", "cluster": {"server": server, "certificate-authority-data": _base64(authority)}}
            ],
            "users": [{"name": "cgpu", "user": credentials}],
            "contexts": [{"name": "cgpu", "context": {"cluster": "cgpu", "user": "cgpu"}}],
            "current-context": "cgpu",
        },
        indent=1,
    )


def _name(common_name: str, organization: str = "") -> x509.Name:
    fields = [x509.NameAttribute(NameOID.COMMON_NAME, common_name)]
    if organization:
        fields.insert(0, x509.NameAttribute(NameOID.ORGANIZATION_NAME, organization))
    return x509.Name(fields)


def _general_name(name: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ip_address(name))
    except ValueError:
        return x509.DNSName(name)


def _pem(key: ec.EllipticCurvePrivateKey) -> str:
    return key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    ).decode()


def _base64(text: str) -> str:
    return base64.b64encode(text.encode()).decode()
