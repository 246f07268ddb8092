// A table that sorts, filters and can be saved as CSV. Cells are written with textContent only.

const FIRST_ROWS = 50;
const FEW_ROWS = 8;

function drawTable(element, table) {
  const count = table.columns[0].texts.length;
  const state = { sorted: null, falling: true, words: [], all: count <= FIRST_ROWS };
  const bar = make("div", element, "bar");
  const search = make("input", bar);
  search.type = "search";
  search.hidden = count <= FEW_ROWS;
  search.placeholder = "Filter";
  search.setAttribute("aria-label", `Filter ${table.title}`);
  const status = make("span", bar, "quiet");
  status.setAttribute("role", "status");
  const more = make("button", bar, "", `Show all ${count.toLocaleString("en-US")} rows`);
  const save = make("button", bar, "", "CSV");
  save.title = "The rows that match the filter, in full precision";
  const grid = make("table", make("div", element, "scroll"));
  const [head, body] = [make("thead", grid), make("tbody", grid)];
  const arrows = drawHeading(head, table, (column) => {
    if (state.sorted === column) state.falling = !state.falling;
    else [state.sorted, state.falling] = [column, table.columns[column].kind === "number"];
    fill();
  });

  function rows() {
    const chosen = [];
    for (let row = 0; row < count; row++) {
      const text = state.words.length ? table.columns.map((one) => one.texts[row]).join(" ").toLowerCase() : "";
      if (state.words.every((word) => text.includes(word))) chosen.push(row);
    }
    return state.sorted === null ? chosen : sortRows(chosen, table.columns[state.sorted], state.falling);
  }

  function fill() {
    const chosen = rows();
    const shown = state.all ? chosen : chosen.slice(0, FIRST_ROWS);
    body.replaceChildren(...shown.map((row) => drawRow(table.columns, row)));
    more.hidden = state.all || chosen.length <= FIRST_ROWS;
    status.textContent = chosen.length < count || !more.hidden ? `${shown.length.toLocaleString("en-US")} of ${count.toLocaleString("en-US")} rows` : "";
    arrows.forEach((arrow, column) => {
      const isSorted = column === state.sorted;
      arrow.textContent = isSorted ? (state.falling ? " ▼" : " ▲") : "";
      arrow.closest("th").setAttribute("aria-sort", isSorted ? (state.falling ? "descending" : "ascending") : "none");
    });
  }

  search.addEventListener("input", () => {
    state.words = search.value.toLowerCase().split(/\s+/).filter(Boolean);
    fill();
  });
  more.addEventListener("click", () => {
    state.all = true;
    fill();
  });
  save.addEventListener("click", () => download(`${table.name}.csv`, csvOf(table.columns, rows())));
  fill();
}

// The heading with a row of groups above it, if columns share one; returns where the signs of the order go.
function drawHeading(head, table, sort) {
  const { columns } = table;
  if (columns.some((column) => column.heading)) {
    const groups = make("tr", head);
    for (let i = 0; i < columns.length; ) {
      const { heading } = columns[i];
      let span = 1;
      while (heading && columns[i + span]?.heading === heading) span++;
      const cell = make("th", groups, heading ? "group" : "", heading);
      cell.colSpan = span;
      i += span;
    }
  }
  const labels = make("tr", head);
  return columns.map((column, i) => {
    const cell = make("th", labels, column.kind === "number" ? "number" : "");
    cell.title = column.help;
    const button = make("button", cell, "", column.label);
    button.addEventListener("click", () => sort(i));
    return make("span", button);
  });
}

function drawRow(columns, row) {
  const line = document.createElement("tr");
  columns.forEach((column, i) => {
    const look = column.kind === "number" ? "number" : i === 0 ? "name" : (column.tones?.[row] ?? "");
    const text = column.texts[row];
    const cell = make("td", line, look, look === "name" ? "" : text);
    if (look !== "name") return;
    for (const part of text.split(/(?<=[/:])/)) cell.append(part, document.createElement("wbr")); // may break there
  });
  return line;
}

// Missing numbers come last either way.
function sortRows(rows, column, falling) {
  const sign = falling ? -1 : 1;
  const key = column.values ?? column.texts;
  const isMissing = (row) => key[row] === null || key[row] === "";
  return [...rows].sort((a, b) => {
    if (isMissing(a) || isMissing(b)) return isMissing(a) - isMissing(b) || a - b;
    const order = column.values ? key[a] - key[b] : key[a].localeCompare(key[b], "en", { numeric: true });
    return sign * order || a - b;
  });
}

function csvOf(columns, rows) {
  const lines = [columns.map((column) => cellOf(column.csv))];
  for (const row of rows) {
    lines.push(columns.map((column) => (column.values ? String(column.values[row] ?? "") : cellOf(column.texts[row]))));
  }
  return lines.map((line) => line.join(",") + "\r\n").join("");
}

// As `tfcompare.views.csv_files.defused`: a spreadsheet would run a text that begins like a formula.
function cellOf(text) {
  const safe = /^(?:[\t\r\n]|[ \u00a0]*[=+\-@\uff1d\uff0b\uff0d\uff20])/.test(text) ? `'${text}` : text;
  return /[",\r\n]/.test(safe) ? `"${safe.replaceAll('"', '""')}"` : safe;
}

function download(name, text) {
  const link = document.createElement("a");
  link.href = URL.createObjectURL(new Blob(["\ufeff", text], { type: "text/csv" }));
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 10_000);
}
