"""What pages of a server for many users show: uploads, and who is logged in.

Uploads from a browser on this machine belong to the user, with a login to the account. All others belong to the
browser session alone, and are deleted when it ends.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from secrets import token_hex
from typing import Any

import streamlit as st

from tfcompare.errors import TfcompareError
from tfcompare.server.uploads import Arrival, Limits, Quotas, Upload, Uploads, arriving, clean, session_owner
from tfcompare.settings import Settings
from tfcompare.sources.folder_permissions import why_not_private
from tfcompare.sources.logdir import FoundRun
from tfcompare.sources.logdir.files import is_profile
from tfcompare.text import as_code, as_markdown, some_of
from tfcompare.ui.frame import access
from tfcompare.ui.frame.hooks import Hooks
from tfcompare.ui.frame.search import rescan
from tfcompare.ui.widgets import deleting
from tfcompare.units import format_bytes

_REMEMBER = "<script>sessionStorage.setItem('tfcompare.asked', location.href)</script>"
_GO_ON = """<script>{
    const asked = sessionStorage.getItem('tfcompare.asked');
    sessionStorage.removeItem('tfcompare.asked');
    if (asked && asked !== location.href) location.replace(asked);
}</script>"""
"""After a login, the provider redirects the browser to the home page, whichever page it came from."""
_ROUND, _MESSAGE, _TOGETHER, _ARRIVED = map("tfcompare.uploads.{}".format, ("round", "message", "together", "arrived"))
_MOST_NAMED = 8
_RUNS, _HOSTS = "separate runs", "hosts of one run"
_MOST_SELECTED = 5
"""How many runs of an upload are selected."""

LOCAL = "local"
"""The owner of uploads from browsers on this machine."""


def account_name() -> str:
    """The provider's name for the current user's account, or an empty string if nobody is logged in."""
    user = st.user.to_dict()
    name = str(user.get("sub") or user.get("email") or "")
    return f"{user.get('iss', '')} {name}".strip() if name and user.get("is_logged_in", True) else ""


def require_login() -> None:
    """Stop the page with a login button, if a login is configured and the user is not logged in."""
    user = st.user.to_dict()
    if user.get("is_logged_in") is not False:  # no login is configured, or the user is logged in
        return
    st.info("This dashboard is for people who are logged in.")
    st.html(_REMEMBER, unsafe_allow_javascript=True)
    for provider in providers(st.secrets["auth"]):
        label, args = (f"Log in with {provider}", (provider,)) if provider else ("Log in", ())
        st.button(label, icon=":material/login:", type="primary", on_click=st.login, args=args)
    st.stop()


def show_account() -> None:
    """Show who is logged in, and a logout button, in the sidebar."""
    user = st.user.to_dict()
    if not user.get("is_logged_in"):
        return
    st.sidebar.html(_GO_ON, unsafe_allow_javascript=True)
    with st.sidebar.container(horizontal=True, vertical_alignment="center"):
        st.caption(as_code(str(user.get("email") or user.get("name") or user.get("sub"))), width="content")
        st.button("Log out", icon=":material/logout:", type="tertiary", on_click=st.logout)


def providers(auth: Mapping[str, Any]) -> list[str]:
    """The names of the providers in the `[auth]` settings; the name of an unnamed provider is empty."""
    named = [name for name, value in auth.items() if isinstance(value, Mapping) and "client_id" in value]
    return ([""] if "client_id" in auth else []) + named


@dataclass(frozen=True)
class Message:
    """The outcome of the last upload or deletion, in Markdown."""

    text: str
    is_good: bool


def own_uploads(settings: Settings) -> Uploads:
    """The uploads that this browser may see."""
    limits = Limits(total_bytes=settings.upload_bytes, file_bytes=min(Limits().file_bytes, settings.upload_bytes))
    quotas = Quotas(owner_bytes=settings.user_uploads_bytes, all_bytes=settings.uploads_bytes)
    _clean(settings.data_folder)
    if access.is_same_machine(st.context.headers.to_dict()):
        return Uploads(settings.data_folder, LOCAL, limits, quotas)
    if account := account_name():
        return Uploads(settings.data_folder, f"account {account}", limits, quotas)
    return _session_uploads(settings.data_folder, limits, quotas)


@st.cache_resource(scope="session", show_spinner=False, on_release=lambda uploads: uploads.delete_all())
def _session_uploads(data: Path, limits: Limits, quotas: Quotas) -> Uploads:
    return Uploads(data, session_owner(token_hex(16)), limits, quotas)


@st.cache_resource(show_spinner=False)
def _clean(data: Path) -> None:
    """Remove what killed processes left behind; runs once per server."""
    clean(data)


def _newly_uploaded(found: Sequence[FoundRun]) -> list[str]:
    """The ids of the runs of the last upload, once: the oldest first, at most as many as are compared at once."""
    place: Path | None = st.session_state.pop(_ARRIVED, None)
    if place is None:
        return []
    runs = [run for run in found if run.is_readable and isinstance(run.path, Path) and run.path.is_relative_to(place)]
    return [run.id for run in runs[-_MOST_SELECTED:]]


def _section(settings: Settings) -> None:
    """Accept uploads, report on the last one, and list the stored ones."""
    if why := why_not_private(settings.data_folder):
        st.caption(f"Uploads are off because the folder for them is not safe: {why}.")
        return
    store = own_uploads(settings)
    if message := st.session_state.get(_MESSAGE):
        (st.success if message.is_good else st.error)(message.text)
    number = st.session_state.setdefault(_ROUND, 0)
    label, key = "A logdir or run folder", f"tfcompare.uploads.folder.{number}"
    about = "The browser sends the whole folder; only the profiles in it are stored."
    folder = st.file_uploader(label, accept_multiple_files="directory", key=key, help=about)
    label, key = "Profiles (.xplane.pb), or a zip or tar.gz of a logdir", f"tfcompare.uploads.files.{number}"
    # Of any type: what is no profile is refused below with the reason, which a browser that refuses it does not say.
    files = st.file_uploader(label, accept_multiple_files=True, key=key)
    label, choices = "Several profiles at once are", [_RUNS, _HOSTS]
    together = st.segmented_control(label, choices, default=_RUNS, required=True, key=_TOGETHER)
    sent = [file.file_id for file in (*folder, *files)]
    if refusal := arriving.refusal(sent):
        message = Message(as_markdown(f"The upload was refused: {refusal}."), is_good=False)
    elif folder:
        message = _receive(store, [_arrival(file) for file in folder])
    elif files:
        message = _receive(store, [_arrival(file, "profile/" if together == _HOSTS else "") for file in files])
    else:
        _list(store)
        return
    st.session_state[_MESSAGE] = message
    st.session_state[_ROUND] += 1  # clears the fields
    arriving.release(sent)
    rescan()
    st.rerun()


def _arrival(file: Any, folder: str = "") -> Arrival:
    return Arrival(f"{folder if is_profile(file.name) else ''}{file.name}", file, file.size)


def _receive(store: Uploads, arrivals: Sequence[Arrival]) -> Message:
    """Store the uploaded files, with progress."""
    total = sum(arrival.size_bytes for arrival in arrivals) or 1
    bar = st.progress(0.0, text="Checking the upload…")
    done = 0

    def report_new_bytes(size_bytes: int) -> None:
        nonlocal done
        done += size_bytes
        text = f"Storing the profiles: {format_bytes(done)}" if done else "Checking the upload…"
        bar.progress(min(done / total, 1.0), text=text)

    try:
        upload = store.receive(arrivals, report_new_bytes)
        st.session_state[_ARRIVED] = upload.place
        return Message(_summary(upload), is_good=True)
    except TfcompareError as error:
        return Message(as_markdown(error), is_good=False)
    except OSError as error:
        reason = as_markdown(error.strerror or str(error))
        advice = "Free space on the server's disk, or ask its administrator."
        return Message(f"The upload could not be stored ({reason}). {advice}", is_good=False)


def _summary(upload: Upload) -> str:
    if upload.is_known:
        return f"{as_code(upload.name)} was uploaded before, with the same profiles ({_size(upload)})."
    left = upload.ignored_count
    names = some_of(map(as_code, upload.ignored), _MOST_NAMED, left)
    rest = f" Not stored, because they are no profiles: {names}." if left else ""
    return f"{as_code(upload.name)} was added: {_size(upload)}.{rest}"


def _list(store: Uploads) -> None:
    uploads = {upload.digest: upload for upload in store.all()}
    deleting.show(
        {upload.digest: f"{as_code(upload.name)} {_size(upload)}" for upload in uploads.values()},
        lambda digest: _delete(store, uploads[digest]),
        on_ask=lambda: st.session_state.update({_MESSAGE: None}),
    )


def _size(upload: Upload) -> str:
    return f"{upload.profiles:,} profile{'s' if upload.profiles > 1 else ''}, {format_bytes(upload.size_bytes)}"


def _delete(store: Uploads, upload: Upload) -> None:
    store.delete(upload.digest)
    st.session_state[_MESSAGE] = Message(f"{as_code(upload.name)} was deleted.", is_good=True)
    rescan()


HOOKS = Hooks(
    require_login=require_login,
    show_account=show_account,
    account=account_name,
    uploads=lambda settings: tuple(upload.place for upload in own_uploads(settings).all()),
    newly_uploaded=_newly_uploaded,
    upload_section=_section,
)
