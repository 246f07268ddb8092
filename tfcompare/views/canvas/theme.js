// Colours of the page's theme and of changes, and the sizes of a canvas.

const BETTER = [43, 123, 214]; // the colours of changes in all charts
const WORSE = [221, 107, 0];
const UNCHANGED = 0.07; // log2: changes of less than 5 % are not coloured
const MOST_CHANGE = 1; // log2: twice as fast or slow has the full colour
const SHADES = 10;

function theme(element) {
  const style = getComputedStyle(element);
  const of = (name, otherwise) => style.getPropertyValue(name).trim() || otherwise;
  const canvas = document.createElement("canvas").getContext("2d");
  canvas.fillStyle = of("--st-background-color", "#ffffff");
  const back = /^#(..)(..)(..)/.exec(canvas.fillStyle)?.slice(1).map((part) => parseInt(part, 16)) ?? [255, 255, 255];
  const isDark = back[0] + back[1] + back[2] < 384;
  const grey = isDark ? [86, 97, 112] : [176, 186, 198];
  return {
    isDark,
    font: of("--st-font", "sans-serif"),
    text: of("--st-text-color", isDark ? "#e6eaf0" : "#1b2430"),
    back: of("--st-background-color", "#ffffff"),
    band: of("--st-secondary-background-color", "#f3f5f8"),
    border: of("--st-border-color", "#d8dee6"),
    primary: of("--st-primary-color", "#1f66b5"),
    neutral: isDark ? "#39424e" : "#dfe4ea",
    alone: isDark ? "#4a5361" : "#ccd3db",
    shades: [-1, 1].map((sign) => Array.from({ length: SHADES + 1 }, (_, i) => mixColours(grey, sign < 0 ? BETTER : WORSE, i / SHADES))),
    hatch: hatch(isDark ? "#aab4c0" : "#66717f"),
  };
}

function mixColours(from, to, share) {
  return `rgb(${from.map((value, i) => Math.round(value + (to[i] - value) * share)).join(",")})`;
}

// The colour of a change: log2 of candidate ÷ baseline.
function shadeOf(change, colours) {
  const share = Math.min(Math.abs(change), MOST_CHANGE) / MOST_CHANGE;
  return colours.shades[change < 0 ? 0 : 1][Math.abs(change) < UNCHANGED ? 0 : Math.max(2, Math.round(share * SHADES))];
}

// A pattern of lines that rise to the right, or fall if `leaning` is −1.
function hatch(colour, leaning = 1) {
  const tile = document.createElement("canvas");
  tile.width = tile.height = 6;
  const context = tile.getContext("2d");
  context.strokeStyle = colour;
  context.lineWidth = 1.2;
  context.beginPath();
  for (const x of [-3, 3, 9]) {
    context.moveTo(x, leaning > 0 ? 6 : 0);
    context.lineTo(x + 6, leaning > 0 ? 0 : 6);
  }
  context.stroke();
  return context.createPattern(tile, "repeat");
}

// Calls `redraw` when the element changes its size or the page its theme; returns a function that ends it.
function watchLook(root, redraw) {
  const sizes = new ResizeObserver(redraw);
  sizes.observe(root);
  const themes = new MutationObserver(redraw);
  themes.observe(document.documentElement, { attributes: true, attributeFilter: ["class", "style", "data-theme"] });
  return () => {
    sizes.disconnect();
    themes.disconnect();
  };
}

// Sizes a canvas in CSS pixels, sharp on any screen; returns its context, cleared.
function prepare(canvas, width, height) {
  const ratio = window.devicePixelRatio || 1;
  const [w, h] = [Math.max(1, Math.round(width * ratio)), Math.max(1, Math.round(height * ratio))];
  if (canvas.width !== w || canvas.height !== h) [canvas.width, canvas.height] = [w, h];
  canvas.style.width = `${width}px`;
  canvas.style.height = `${height}px`;
  const context = canvas.getContext("2d");
  context.setTransform(ratio, 0, 0, ratio, 0, 0);
  context.clearRect(0, 0, width, height);
  return context;
}
