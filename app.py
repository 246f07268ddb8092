"""Home: choose a baseline and the runs to compare with it."""

from streamlit.starlette import App

from tfcompare.ui.frame import hooks
from tfcompare.ui.widgets import perfetto

app = App(__file__, middleware=hooks.middleware(), routes=perfetto.routes())
# What `streamlit run` serves: this script, and those in `pages/`.

if __name__ == "__main__":
    from tfcompare import ui
    from tfcompare.ui.pages import home

    with ui.page("Compare profile runs", needs="runs") as view:
        home.show(view)
