# SPDX-License-Identifier: Apache-2.0
"""How often events speak."""

from pathlib import Path

import pytest

from cgpu.kube.client import KubeClient
from cgpu.kube.events import BURST, EventRecorder, Reference
from tests.fake_api import serving
from tests.kube.server import answering

ABOUT = Reference("Pod", "p", "u", "d")


async def test_events_speak_once_a_minute_unless_they_change(tmp_path: Path) -> None:
    now = [1_800_000_000.0]
    async with serving(tmp_path / "kubeconfig") as api, await KubeClient.connect(tmp_path / "kubeconfig") as client:
        recorder = EventRecorder(client, "tester", clock=lambda: now[0])
        for moment, text, want in ((0, "a", 1), (59, "a", 1), (59, "b", 2), (60, "b", 2), (200, "b", 2)):
            now[0] = 1_800_000_000.0 + moment
            await recorder.warning(ABOUT, "Why", text)
            assert len(api.events) == want, (moment, text)
        assert [(event["message"], event["count"]) for event in api.events] == [("a", 1), ("b", 2)]
        assert api.events[0]["involvedObject"] == {
            "apiVersion": "v1",
            "kind": "Pod",
            "name": "p",
            "uid": "u",
            "namespace": "d",
        }
        assert api.events[1]["lastTimestamp"] == "2027-01-15T08:03:20Z"


async def test_a_flood_of_events_is_dropped_and_said(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    async with serving(tmp_path / "kubeconfig") as api, await KubeClient.connect(tmp_path / "kubeconfig") as client:
        recorder = EventRecorder(client, "tester", clock=lambda: 0.0)
        for index in range(BURST + 3):
            await recorder.normal(ABOUT, "Why", str(index))
        assert len(api.events) == BURST
        assert caplog.text.count("too many events") == 3


async def test_an_event_that_cannot_be_written_is_logged_and_tried_again(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async with answering(tmp_path, 403, {"code": 403, "message": "forbidden"}) as client:
        recorder = EventRecorder(client, "tester", clock=lambda: 0.0)
        await recorder.warning(ABOUT, "Why", "x" * 2000)
        await recorder.warning(ABOUT, "Why", "x" * 2000)
    assert caplog.text.count("event Why for Pod p is lost") == 2
