// Fills the report: charts, tables and timelines when they are first seen, again in other colours, and for paper.

const PAPER_PIXELS = 690;
const NARROW_PIXELS = 560; // what charts elsewhere have at least: `.chart` in the stylesheet
const shown = new Map();

const { blocks, config } = JSON.parse(await unpack(document.getElementById("payload").textContent));

async function show(element) {
  const block = blocks[element.dataset.block];
  if (shown.has(element)) return;
  shown.set(element, null);
  if (block.kind === "chart") {
    await loadPlotly();
    const draw = () => drawChart(element, element.clientWidth < NARROW_PIXELS ? { ...block.figure, ...block.narrow } : block.figure, config);
    shown.set(element, draw);
    await draw();
  } else if (block.kind === "table") drawTable(element, block);
  else if (block.kind === "flame") {
    const graph = mountFlame(element, block.data, () => {});
    shown.set(element, () => graph.update(block.data));
  } else shown.set(element, showTimeline(element, block));
}

// A selected span and its partner are marked, and told below; returns what draws it again.
function showTimeline(element, { data, state }) {
  const said = document.getElementById(`span-${element.dataset.block}`);
  const { spans } = data;
  const find = (side, id) => spans.start.findIndex((_, i) => spans.side[i] === side && spans.id[i] === id);
  const place = (i) => ({ side: spans.side[i], lane: spans.lane[i], row: spans.row[i], id: spans.id[i], start: spans.start[i], duration: spans.duration[i], launch: null });

  function inWords(one) {
    const op = spans.op[one] >= 0 ? ` (${data.names[spans.op[one]]})` : "";
    return `${data.letters[spans.side[one]]}: ${data.names[spans.name[one]]}${op}, ${formatDuration(spans.duration[one])}`;
  }

  function select(chosen) {
    const i = chosen ? find(chosen.side, chosen.id) : -1;
    const found = i < 0 ? [] : [i];
    const partner = i >= 0 && data.letters.length > 1 && spans.partner[i] >= 0 ? find(1 - chosen.side, spans.partner[i]) : -1;
    if (partner >= 0) found.push(partner);
    found.sort((a, b) => spans.side[a] - spans.side[b]);
    data = { ...data, chosen, selected: found.map(place) };
    said.textContent = found.map(inWords).join(" · ");
    mounted.update(data, state);
  }

  const mounted = mount(element, data, state, (name, value) => {
    if (name === "selected") select(value);
  });
  return () => mounted.update(data, state);
}

// What is in sight, or soon will be; not what is folded.
const watcher = new IntersectionObserver(
  (entries) => entries.filter((entry) => entry.isIntersecting).forEach((entry) => show(entry.target)),
  { rootMargin: "600px" },
);
const every = [...document.querySelectorAll("[data-block]")];
every.forEach((element) => watcher.observe(element));

const isUnfolded = (element) => !element.parentElement.closest("details:not([open])");
const folds = [...document.querySelectorAll("main details")];
const unfold = document.getElementById("unfold");
unfold.addEventListener("click", () => {
  const opens = folds.some((fold) => !fold.open);
  folds.forEach((fold) => (fold.open = opens));
  unfold.textContent = opens ? "Fold all" : "Unfold all";
});

const dark = matchMedia("(prefers-color-scheme: dark)");
const button = document.getElementById("theme");
document.querySelector(".tools").hidden = false;

function paint(name) {
  document.documentElement.dataset.theme = name;
  button.textContent = name === "dark" ? "Light" : "Dark";
  for (const redraw of shown.values()) redraw?.();
}
paint(dark.matches ? "dark" : "light");
button.addEventListener("click", () => paint(document.documentElement.dataset.theme === "dark" ? "light" : "dark"));
dark.addEventListener("change", () => paint(dark.matches ? "dark" : "light"));

// On paper everything that is unfolded is drawn in light colours, as wide as the page.
let [onScreen, folded] = [null, []];
window.addEventListener("beforeprint", () => {
  onScreen = document.documentElement.dataset.theme;
  document.body.style.width = `${PAPER_PIXELS}px`;
  folded = folds.filter((fold) => !fold.open && fold.parentElement.tagName === "LI");
  folded.forEach((fold) => (fold.open = true));
  every.filter(isUnfolded).forEach(show);
  paint("light");
  for (const chart of document.querySelectorAll(".js-plotly-plot")) Plotly.Plots.resize(chart);
});
window.addEventListener("afterprint", () => {
  document.body.style.width = "";
  folded.forEach((fold) => (fold.open = false));
  paint(onScreen);
  for (const chart of document.querySelectorAll(".js-plotly-plot")) Plotly.Plots.resize(chart);
});
document.documentElement.dataset.ready = "true";
