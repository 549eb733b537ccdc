# SPDX-License-Identifier: Apache-2.0
"""The guest's agent, on a socket in place of its serial port."""

import importlib.util
import socket
import sys
from pathlib import Path

import pytest

from cgpu.sandbox import wire

AGENT = Path(__file__).parent / "guest/agent.py"


@pytest.fixture
def agent(monkeypatch):
    """The agent's module; in the guest its wire format lies beside it."""
    monkeypatch.setitem(sys.modules, "wire", wire)
    spec = importlib.util.spec_from_file_location("guest_agent", AGENT)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_an_agent_whose_host_has_gone_waits_in_peace(agent):
    host, port = socket.socketpair()
    with host, port:
        served = agent.Agent(port.fileno())
        host.close()
        assert served.poll.poll(0)

        served.on_port()

        assert served.poll.poll(0) == []


def test_everything_that_came_at_once_is_taken(agent, tmp_path, monkeypatch):
    monkeypatch.setattr(agent, "CHUNK", 7)
    host, port = socket.socketpair()
    with host, port:
        served = agent.Agent(port.fileno())
        for name in "ab":
            host.sendall(wire.encode({"do": "put", "id": 1, "path": str(tmp_path / name), "mode": 0o600}, b"text"))
        assert served.poll.poll(0)

        served.on_port()

        assert [(tmp_path / name).read_bytes() for name in "ab"] == [b"text", b"text"]
        assert served.poll.poll(0) == []
