"""CSV downloads: of the rows shown, and of all rows."""

from __future__ import annotations

from collections.abc import Callable

import pandas as pd
import streamlit as st

from tfcompare.export.csv import file_stem, spreadsheet_csv


def csv_buttons(shown: pd.DataFrame, everything: Callable[[], pd.DataFrame], *, name: str, key: str) -> None:
    """Two buttons: one for the rows and columns of the table above, in its order, and one for all of them.

    Columns keep their machine names, which include the unit. Each file is made on request.
    """
    with st.container(horizontal=True):
        st.download_button(
            "CSV of this row" if len(shown) == 1 else f"CSV of these {len(shown):,} rows",
            lambda: spreadsheet_csv(shown),
            file_name=f"{file_stem(name)}_shown.csv",
            mime="text/csv",
            icon=":material/download:",
            on_click="ignore",
            help="The rows, columns, words and order of the table above, all pages of it, in full precision",
            key=f"{key}_shown",
        )
        st.download_button(
            "CSV: ungrouped, all columns",
            lambda: spreadsheet_csv(everything()),
            file_name=f"{file_stem(name)}.csv",
            mime="text/csv",
            icon=":material/download:",
            on_click="ignore",
            help="Every row and column of all candidates, without any filter, as `tfcompare diff` writes them",
            key=f"{key}_everything",
        )
