"""What other threads hand to the owner: messages, errors, and actions that it runs for them."""

from __future__ import annotations

import threading

import pytest

from quadloom.crawling.ingest.inbox import Inbox
from quadloom.crawling.ingest.messages import EventMessage, NetworkProbed
from quadloom.errors import UsageError


def test_messages_come_in_order_and_calls_are_run_on_the_way() -> None:
    inbox = Inbox()
    done: list[str] = []
    taken: list[object] = []
    inbox.on(EventMessage, taken.append)
    inbox.event("notice", "first")
    inbox.put(NetworkProbed(True))
    caller = threading.Thread(target=lambda: done.append(inbox.call(lambda: "ran")))
    caller.start()
    while not done:
        inbox.deliver(0.05)
    caller.join()
    assert (taken, done) == ([EventMessage("notice", "first")], ["ran"]), "what nobody handles is dropped"


def test_an_error_of_a_call_is_the_callers_and_one_of_a_thread_the_owners() -> None:
    inbox = Inbox()
    refused: list[str] = []

    def ask() -> None:
        def action() -> None:
            raise UsageError("no")

        try:
            inbox.call(action)
        except UsageError as error:
            refused.append(error.message)

    caller = threading.Thread(target=ask)
    caller.start()
    while not refused:
        inbox.deliver(0.05)
    caller.join()
    inbox.fail(OSError("disk"))
    with pytest.raises(OSError, match="disk"):
        inbox.deliver(0.0)


def test_nobody_waits_for_an_owner_that_has_ended() -> None:
    inbox = Inbox()
    taken: list[object] = []
    inbox.on(EventMessage, taken.append)
    inbox.event("notice", "left over")
    inbox.fail(OSError("too late"))
    inbox.close()
    with pytest.raises(TimeoutError):
        inbox.call(lambda: None)
    inbox.deliver_rest(EventMessage)
    assert taken == [EventMessage("notice", "left over")]
