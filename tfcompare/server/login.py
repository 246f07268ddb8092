"""Login with OpenID Connect, if Streamlit's `[auth]` settings configure a provider; otherwise no login is needed."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import streamlit as st

from tfcompare.text import as_code

_REMEMBER = "<script>sessionStorage.setItem('tfcompare.asked', location.href)</script>"
_GO_ON = """<script>{
    const asked = sessionStorage.getItem('tfcompare.asked');
    sessionStorage.removeItem('tfcompare.asked');
    if (asked && asked !== location.href) location.replace(asked);
}</script>"""
"""After a login, the provider redirects the browser to the home page, whichever page it came from."""


def account() -> str:
    """The provider's name for the current user's account, or an empty string if nobody is logged in."""
    user = st.user.to_dict()
    name = str(user.get("sub") or user.get("email") or "")
    return f"{user.get('iss', '')} {name}".strip() if name and user.get("is_logged_in", True) else ""


def require() -> None:
    """Stop the page with a login button, if a login is configured and the user is not logged in."""
    user = st.user.to_dict()
    if user.get("is_logged_in") is not False:  # no login is configured, or the user is logged in
        return
    st.info("This dashboard is for people who are logged in.")
    st.html(_REMEMBER, unsafe_allow_javascript=True)
    for provider in providers(st.secrets["auth"]):
        label = f"Log in with {provider}" if provider else "Log in"
        st.button(
            label, icon=":material/login:", type="primary", on_click=st.login, args=(provider,) if provider else ()
        )
    st.stop()


def show() -> None:
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
