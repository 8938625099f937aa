"""Values that contradict each other are refused when they are loaded, with the figures."""

from __future__ import annotations

from pathlib import Path

import pytest

from quadloom.errors import SettingsError
from quadloom.settings_loading import load


def loading(folder: Path, text: str) -> None:
    (folder / "quadloom.toml").write_text(text)
    load(environ={}, directory=folder)


def test_a_service_that_may_outlast_the_page_is_refused(tmp_path: Path) -> None:
    with pytest.raises(SettingsError, match=r"12 s .* only 10 s .*9001"):
        loading(
            tmp_path, '[[service]]\nurl = "http://127.0.0.1:9001/"\nkinds = ["image"]\ntimeout = 6.0\nretries = 1\n'
        )
    loading(tmp_path, '[[service]]\nurl = "http://127.0.0.1:9001/"\ntimeout = 5.0\nretries = 1\n')


def test_services_for_the_same_kind_add_up(tmp_path: Path) -> None:
    one, two = (f'[[service]]\nurl = "http://127.0.0.1/{kind}"\nkinds = ["{kind}"]\n' for kind in ("image", "pdf"))
    loading(tmp_path, one + two)
    with pytest.raises(SettingsError, match="image"):
        loading(tmp_path, one + two + '[[service]]\nurl = "http://127.0.0.1/all"\ntimeout = 2.0\n')


def test_authorities_must_be_there(tmp_path: Path) -> None:
    with pytest.raises(SettingsError, match="there is no file"):
        loading(tmp_path, f'[guard]\nauthorities = "{tmp_path}/none.pem"\n')
