"""contextforge settings."""

from __future__ import annotations

from service.cli.output import AsJson, print_rows


def settings(as_json: AsJson = False) -> None:
    """Show every setting, its value and where that comes from; secrets are masked."""
    from service.settings import SettingView, describe_settings, load_settings

    print_rows(describe_settings(load_settings()), SettingView, as_json=as_json)
