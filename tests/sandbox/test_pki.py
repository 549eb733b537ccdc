# SPDX-License-Identifier: Apache-2.0
"""Certificates: who they name, who signed them, and that a TLS handshake with both sides' accepts."""

import json
import socket
import ssl
import threading
from base64 import b64decode
from datetime import UTC, datetime
from pathlib import Path

import pytest
from cryptography import x509

from cgpu.sandbox.pki import Authority, Pair, kubeconfig, signing_key


def load(pair: Pair) -> x509.Certificate:
    return x509.load_pem_x509_certificate(pair.certificate.encode())


def test_a_client_is_its_common_name_and_its_group() -> None:
    pair = Authority().issue("system:node:node-1", "system:nodes")

    assert load(pair).subject.rfc4514_string() == "CN=system:node:node-1,O=system:nodes"


def test_a_server_has_its_names_and_addresses() -> None:
    names = load(
        Authority().issue("kube-apiserver", names=("kubernetes", "10.96.0.1"))
    ).extensions.get_extension_for_class(x509.SubjectAlternativeName)

    assert [str(name.value) for name in names.value] == ["kubernetes", "10.96.0.1"]


def test_certificates_are_valid_now_and_for_a_year() -> None:
    now = datetime(2026, 3, 1, tzinfo=UTC)
    certificate = load(Authority(now).issue("x"))

    assert certificate.not_valid_before_utc < now
    assert (certificate.not_valid_after_utc - now).days == 365


def test_both_sides_of_a_connection_accept_each_other(tmp_path: Path) -> None:
    authority = Authority()
    server = context(
        tmp_path / "server", authority.issue("server", names=("127.0.0.1",)), ssl.Purpose.CLIENT_AUTH, authority
    )
    client = context(tmp_path / "client", authority.issue("client"), ssl.Purpose.SERVER_AUTH, authority)

    assert greeting(server, client) == "client"


def test_a_client_of_another_authority_is_turned_away(tmp_path: Path) -> None:
    authority, other = Authority(), Authority()
    server = context(
        tmp_path / "server", authority.issue("server", names=("127.0.0.1",)), ssl.Purpose.CLIENT_AUTH, authority
    )
    client = context(tmp_path / "client", other.issue("client"), ssl.Purpose.SERVER_AUTH, authority)

    with pytest.raises(ssl.SSLError):
        greeting(server, client)


def context(path: Path, pair: Pair, purpose: ssl.Purpose, authority: Authority) -> ssl.SSLContext:
    path.write_text(pair.certificate + pair.key)
    made = ssl.create_default_context(purpose, cadata=authority.certificate)
    made.verify_mode = ssl.CERT_REQUIRED
    made.load_cert_chain(path)
    return made


def greeting(server: ssl.SSLContext, client: ssl.SSLContext) -> str:
    """What the server reads as the client's name; TLS errors of either side are raised."""
    listener = socket.create_server(("127.0.0.1", 0))
    seen: list[str] = []

    def serve() -> None:
        connection, _ = listener.accept()
        try:
            with server.wrap_socket(connection, server_side=True) as secure:
                subject = secure.getpeercert()["subject"]
                seen.append(subject[-1][0][1])
                secure.sendall(b"hello")
        except ssl.SSLError:
            connection.close()

    thread = threading.Thread(target=serve)
    thread.start()
    try:
        with (
            socket.create_connection(listener.getsockname()) as plain,
            client.wrap_socket(plain, server_hostname="127.0.0.1") as secure,
        ):
            assert secure.recv(5) == b"hello"
    finally:
        thread.join()
        listener.close()
    return seen[0]


def test_a_kubeconfig_stands_alone() -> None:
    authority = Authority()
    pair = authority.issue("admin", "system:masters")

    config = json.loads(kubeconfig("https://10.77.0.2:6443", authority.certificate, pair))

    assert config["clusters"][0]["cluster"]["server"] == "https://10.77.0.2:6443"
    assert b64decode(config["users"][0]["user"]["client-certificate-data"]).decode() == pair.certificate
    assert b64decode(config["clusters"][0]["cluster"]["certificate-authority-data"]).decode() == authority.certificate


def test_tokens_are_signed_with_a_pair_of_their_own() -> None:
    pair = signing_key()

    assert pair.certificate.startswith("-----BEGIN PUBLIC KEY-----")
    assert pair.key.startswith("-----BEGIN PRIVATE KEY-----")
