// The panel beside the lanes: what ran in the measured range, and the selected span with its partner.

// `data.details` is of the selected span, `data.ranged` of the range; both as `views/timeline/details.py` makes them.
// Until these have come for a new selection, `quick` is what is drawn of it. A `compact` drawing has no hint.
function showDock(dock, data, quick, isCompact) {
  const { details, ranged } = data;
  const shown = JSON.stringify([details, ranged, quick]);
  if (dock.dataset.shown === shown) return;
  dock.dataset.shown = shown;
  dock.replaceChildren();
  dock.hidden = !details || (isCompact && !details.title && !ranged && !quick);
  if (dock.hidden) return;
  if (ranged) addPart(dock, ranged);
  if (quick) make("div", dock, "quick", quick);
  else if (details.title) addPart(dock, details);
  else if (!isCompact) make("div", dock, "hint", details.hint);
}

const WRAPPED = 14; // letters; a longer text of a cell has several lines

// A text with names whose lines break after a slash.
function addName(element, text) {
  for (const part of text.split(/(?<=\/)/)) element.append(part, document.createElement("wbr"));
}

function addPart(dock, { title, about = "", names = [], header, rows }) {
  addName(make("h5", dock), title);
  if (about) make("div", dock, "about", about);
  const table = make("table", dock);
  const head = make("tr", make("thead", table));
  for (const text of header) make("th", head, "", text);
  const body = make("tbody", table);
  for (const row of rows) {
    const line = make("tr", body);
    row.forEach((text, i) => make(i ? "td" : "th", line, text.length > WRAPPED ? "" : "short", text));
  }
  for (const [label, name] of names) {
    make("div", dock, "label", label);
    make("pre", dock, "", name);
  }
}
