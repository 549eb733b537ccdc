# SPDX-License-Identifier: Apache-2.0
"""Certificates for tests: an authority and what it signs."""

import datetime
import ipaddress
from dataclasses import dataclass
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

_DAY = datetime.timedelta(days=1)


@dataclass(frozen=True)
class Pair:
    """Files of one certificate."""

    cert: Path
    key: Path


@dataclass(frozen=True)
class Authority:
    """Signs certificates."""

    cert: x509.Certificate
    key: ec.EllipticCurvePrivateKey

    def write(self, path: Path) -> Path:
        """Its own certificate as PEM."""
        path.write_bytes(self.cert.public_bytes(serialization.Encoding.PEM))
        return path

    def issue(self, folder: Path, name: str, address: str = "") -> Pair:
        """A certificate for a client, or for the server at `address`."""
        key = ec.generate_private_key(ec.SECP256R1())
        builder = _builder(name, self.cert.subject, key).add_extension(
            x509.AuthorityKeyIdentifier.from_issuer_public_key(self.key.public_key()), critical=False
        )
        if address:
            names = x509.SubjectAlternativeName([x509.IPAddress(ipaddress.ip_address(address))])
            builder = builder.add_extension(names, critical=False)
        pair = Pair(folder / f"{name}.crt", folder / f"{name}.key")
        pair.cert.write_bytes(builder.sign(self.key, hashes.SHA256()).public_bytes(serialization.Encoding.PEM))
        pair.key.write_bytes(
            key.private_bytes(
                serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
            )
        )
        return pair


def make_ca(name: str) -> Authority:
    """A fresh authority."""
    key = ec.generate_private_key(ec.SECP256R1())
    subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
    usage = x509.KeyUsage(
        digital_signature=True,
        key_cert_sign=True,
        crl_sign=True,
        content_commitment=False,
        key_encipherment=False,
        data_encipherment=False,
        key_agreement=False,
        encipher_only=False,
        decipher_only=False,
    )
    builder = _builder(name, subject, key).add_extension(
        x509.BasicConstraints(ca=True, path_length=None), critical=True
    )
    return Authority(builder.add_extension(usage, critical=True).sign(key, hashes.SHA256()), key)


def _builder(name: str, issuer: x509.Name, key: ec.EllipticCurvePrivateKey) -> x509.CertificateBuilder:
    now = datetime.datetime.now(datetime.UTC)
    return (
        x509.CertificateBuilder()
        .subject_name(x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)]))
        .issuer_name(issuer)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - _DAY)
        .not_valid_after(now + _DAY)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
    )
