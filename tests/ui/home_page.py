"""What stands on the home page."""

from __future__ import annotations

from streamlit.testing.v1 import AppTest

PATH_FIELD = "tfcompare.path"


def table(home: AppTest) -> dict[str, list[object]]:
    return home.dataframe[0].value.to_dict("list")


def texts(home: AppTest) -> str:
    return "\n".join(element.value for element in (*home.markdown, *home.caption, *home.error, *home.info))
