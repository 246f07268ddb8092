// Draws Plotly figures in the colours of the report.

function cssVariable(name) {
  return getComputedStyle(document.documentElement).getPropertyValue(name).trim();
}

function template() {
  const [text, grid, line, back] = ["--text", "--grid", "--line", "--back"].map(cssVariable);
  const axis = { gridcolor: grid, linecolor: line, zerolinecolor: line, automargin: true, title: { font: { size: 13 } } };
  return {
    layout: {
      paper_bgcolor: "rgba(0,0,0,0)", plot_bgcolor: "rgba(0,0,0,0)",
      font: { color: text, family: "system-ui, sans-serif", size: 13 },
      title: { font: { size: 15 }, subtitle: { font: { size: 12.5 } } },
      hoverlabel: { bgcolor: back, bordercolor: line, font: { color: text, size: 12.5 } },
      xaxis: axis, yaxis: axis,
    },
  };
}

const MOST_TIMES = 3; // as wide as its place: more is lost from sight

async function drawChart(element, figure, config) {
  const layout = { ...figure.layout, template: template(), autosize: true };
  await Plotly.react(element, figure.data, layout, { ...config, responsive: true });
  const [width, beyond] = [element.clientWidth, pixelsBeyond(element)];
  if (beyond < 1) return;
  await widen(element, width + beyond);
  const left = pixelsBeyond(element); // texts at the ends of bars move with these
  if (left < 1) return;
  await widen(element, left < beyond ? Math.min(MOST_TIMES * width, width + beyond ** 2 / (beyond - left)) : width);
}

// The place of a chart scrolls.
function widen(element, pixels) {
  element.style.minWidth = `${Math.ceil(pixels)}px`;
  return Plotly.Plots.resize(element);
}

// How far texts run out of the chart on its right: names and notes, on a phone.
function pixelsBeyond(element) {
  const { right } = element.getBoundingClientRect();
  const ends = [...element.querySelectorAll("text")].map((text) => text.getBoundingClientRect().right);
  return Math.max(right, ...ends) - right;
}

// Plotly's script is compressed; it runs once, when the first chart is needed.
let library = null;
function loadPlotly() {
  library ??= unpack(document.getElementById("plotly").textContent).then((text) => {
    const script = document.createElement("script");
    script.textContent = text;
    document.head.append(script);
  });
  return library;
}

async function unpack(base64) {
  const bytes = Uint8Array.from(atob(base64.trim()), (letter) => letter.charCodeAt(0));
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"));
  return new Response(stream).text();
}
