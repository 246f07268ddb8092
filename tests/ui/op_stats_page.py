"""What stands on the op stats page."""

from __future__ import annotations

import pandas as pd
from streamlit.testing.v1 import AppTest

CONVOLUTION = "Host:Conv2D:autoencoder_1/image_1/convolution"


def shown(page: AppTest) -> AppTest:
    page.run()
    assert not page.exception
    return page


def table(page: AppTest) -> pd.DataFrame:
    """The table as it is sent to the browser, by the frame's column names."""
    frame = page.dataframe[0].value
    frame.columns = [column[-1] for column in frame.columns]
    return frame
