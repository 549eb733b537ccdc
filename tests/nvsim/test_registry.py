# SPDX-License-Identifier: Apache-2.0
"""docs/simulator.md says what the C tables say."""

from tests.nvsim import registry


def test_the_document_shows_the_tables_of_the_sources() -> None:
    """`python -m tests.nvsim.registry` writes them anew after a change."""
    text = registry.DOCUMENT.read_text()

    assert registry.document(text) == text


def test_every_row_of_the_sources_is_found() -> None:
    """Rows that the patterns would miss would be missing from the document too, so they are counted otherwise."""
    counts = {
        name: sum(line.startswith("\t{ ") and line != "\t{ }" for line in registry.source(name).splitlines())
        for name in (
            "escape.c",
            "uvm.c",
            "alloc.c",
            "method_host.c",
            "method_copy.c",
            "method_compute.c",
            "reply_engine.c",
        )
    }

    assert counts["escape.c"] == len(registry.escapes())
    assert counts["uvm.c"] == len(registry.uvm())
    assert counts["alloc.c"] == len(registry.classes()) - 1
    assert counts["method_host.c"] + counts["method_copy.c"] + counts["method_compute.c"] == len(registry.methods())
