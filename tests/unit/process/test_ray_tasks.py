"""Ray that does not start, or is not there: an error of ours with a hint, whatever Ray raises."""

from __future__ import annotations

import pytest

from quadloom.errors import StoreUnavailable
from quadloom.process.ray_tasks import connected

ray = pytest.importorskip("ray", reason="needs ray: pip install quadloom[ray]")

# As in `ray/_private/node.py`; the others are those that connecting to a cluster raises.
TOO_SLOW = Exception("The current node timed out during startup.")


@pytest.mark.parametrize("error", [TOO_SLOW, ConnectionError("no"), TimeoutError(), OSError(28, "No space left")])
@pytest.mark.parametrize(("address", "cure"), [("local", "--workers"), ("auto", "ray start --head")])
def test_whatever_ray_raises_is_an_error_with_a_hint(
    monkeypatch: pytest.MonkeyPatch, error: Exception, address: str, cure: str
) -> None:
    def init(**_: object) -> None:
        raise error

    monkeypatch.setattr(ray, "init", init)  # its own limit is 30 s, and cannot be set
    with pytest.raises(StoreUnavailable) as raised:
        connected(address)
    assert cure in raised.value.hint
    assert (str(error) or "TimeoutError") in str(raised.value)


def test_an_interruption_is_none_of_them(monkeypatch: pytest.MonkeyPatch) -> None:
    def init(**_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(ray, "init", init)
    with pytest.raises(KeyboardInterrupt):
        connected("local")
