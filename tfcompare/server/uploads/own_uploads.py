"""The uploads that a browser may see: its machine's user's, its account's, or those of its session."""

from __future__ import annotations

from pathlib import Path
from secrets import token_hex

import streamlit as st

from tfcompare.server import login
from tfcompare.server.uploads import Limits, Quotas, Uploads, clean, session_owner
from tfcompare.settings import Settings
from tfcompare.ui.frame import access

LOCAL = "local"


def places(settings: Settings) -> tuple[Path, ...]:
    """The folders of this browser's uploads."""
    return tuple(upload.place for upload in mine(settings).all())


def mine(settings: Settings) -> Uploads:
    """The uploads that this browser may see."""
    limits = Limits(total_bytes=settings.upload_bytes, file_bytes=min(Limits().file_bytes, settings.upload_bytes))
    quotas = Quotas(owner_bytes=settings.user_uploads_bytes, all_bytes=settings.uploads_bytes)
    _clean(settings.data_folder)
    if access.is_same_machine(st.context.headers.to_dict()):
        return Uploads(settings.data_folder, LOCAL, limits, quotas)
    if account := login.account():
        return Uploads(settings.data_folder, f"account {account}", limits, quotas)
    return _of_session(settings.data_folder, limits, quotas)


def _of_session(data: Path, limits: Limits, quotas: Quotas) -> Uploads:
    return _session_uploads(data, limits, quotas)


@st.cache_resource(scope="session", show_spinner=False, on_release=lambda uploads: uploads.delete_all())
def _session_uploads(data: Path, limits: Limits, quotas: Quotas) -> Uploads:
    return Uploads(data, session_owner(token_hex(16)), limits, quotas)


@st.cache_resource(show_spinner=False)
def _clean(data: Path) -> None:
    """Remove what killed processes left behind; runs once per server."""
    clean(data)
