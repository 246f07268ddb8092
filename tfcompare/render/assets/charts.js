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

function drawChart(element, figure, config) {
  const layout = { ...figure.layout, template: template(), autosize: true };
  return Plotly.react(element, figure.data, layout, { ...config, responsive: true });
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
