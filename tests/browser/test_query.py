"""The query page in a real browser: Ctrl+Enter runs, the address holds the query, the CSV holds the rows."""

from __future__ import annotations

from playwright.sync_api import Page, expect

from tests.browser.conftest import ROWS_SHOWN, downloaded, opened, query, settled, table_texts

SQL = "SELECT run, '=1+1' AS text, count(*) AS steps\nFROM steps GROUP BY run ORDER BY run DESC"


def test_a_query_is_written_run_and_linked(page: Page, autoencoder_url: str) -> None:
    opened(page, f"{autoencoder_url}/Query")
    main = page.get_by_test_id("stMain")
    expect(main).to_contain_text("30 rows in ")
    editor = main.get_by_label("SQL", exact=True)
    editor.fill(SQL)
    editor.press("Control+Enter")
    expect(main).to_contain_text("2 rows in ")
    settled(page)
    assert query(page)["sql"] == [SQL]
    assert [row[-2:] for row in table_texts(page, -1)] == [["'=1+1", "22"]] * 2
    rows = downloaded(page, ROWS_SHOWN)
    assert rows["text"].tolist() == ["'=1+1"] * 2
    assert rows["run"].str.contains("/plugins/profile/").all(), "the whole id, which the table shows as a name"

    page.get_by_test_id("stSidebar").get_by_role("link", name="Home").click()
    expect(page.get_by_role("heading", name="Compare profile runs")).to_be_visible()
    page.get_by_test_id("stSidebar").get_by_role("link", name="Query").click()
    expect(page.get_by_label("SQL", exact=True)).to_have_value(SQL)
    settled(page)
    assert query(page)["sql"] == [SQL], "it is there again when one comes back"
    editor.fill("SELECT *\nFROM nowhere")
    main.get_by_role("button", name="Run", exact=True).click()
    expect(main.get_by_test_id("stCode")).to_contain_text("Table with name nowhere does not exist!")
