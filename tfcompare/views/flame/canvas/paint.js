// Draws the bars on a canvas. Names are drawn as text only, never as HTML.

const INK = ["#1b2430", "#ffffff"];
const FEWEST_LETTERS = 4;

// Dark or white, whichever is easier to read on a colour: of equal contrast on a luminance of 0.18.
function inkOn(colour) {
  const [red, green, blue] = /\d+,\d+,\d+/.exec(colour)[0].split(",").map((part) => ((Number(part) / 255 + 0.055) / 1.055) ** 2.4);
  return INK[0.2126 * red + 0.7152 * green + 0.0722 * blue > 0.2 ? 0 : 1];
}

// A name that fits, cut in its middle, as its end tells much; empty where fewer than a few letters fit.
function cutToFit(context, name, room) {
  if (context.measureText(name).width <= room) return name;
  let letters = Math.floor((room / context.measureText(name).width) * name.length) - 1;
  const cut = () => `${name.slice(0, Math.ceil(letters * 0.6))}…${name.slice(name.length - Math.floor(letters * 0.4))}`;
  while (letters >= FEWEST_LETTERS && context.measureText(cut()).width > room) letters--;
  return letters >= FEWEST_LETTERS ? cut() : "";
}

// The name and the value of a bar, as far as there is room: the name is cut before the value is left out.
function labelOf(context, name, value, room) {
  const beside = value ? `  ${value}` : "";
  const cut = cutToFit(context, name, room - context.measureText(beside).width);
  return cut ? cut + beside : cutToFit(context, name, room);
}

// `bars` as of `placeBars`, those of the rows from `top` on within `height` pixels; `marked` is outlined.
function paintBars(context, { data, bars, colours, top, height, marked, focus }) {
  context.font = `12px ${colours.font}`;
  context.textBaseline = "middle";
  for (const bar of bars) {
    const y = bar.row * BAR - top;
    if (y + BAR < 0 || y > height) continue;
    const isOne = bar.to === bar.from + 1;
    const isAbove = focus >= 0 && bar.row < data.nodes.depth[focus];
    const colour = shadeOf(isOne ? data.nodes.change[bar.from] : 0, colours);
    const w = bar.w > 3 ? bar.w - 1 : Math.max(bar.w, 0.5);
    context.globalAlpha = isAbove ? 0.55 : 1; // what encloses the zoomed node is wider than drawn
    context.fillStyle = colour;
    context.fillRect(bar.x, y, w, BAR - 1);
    const status = isOne ? data.nodes.status[bar.from] : 0;
    if (status && !data.isPlain) {
      context.fillStyle = colours.hatches[status - 1];
      context.fillRect(bar.x, y, w, BAR - 1);
    }
    context.globalAlpha = 1;
    if (w > 24) {
      const text = labelOf(context, nameOf(data, bar), valueOf(data, bar), w - 8);
      if (text && status && !isAbove) {
        context.fillStyle = colour; // hatching behind letters would make them hard to read
        context.fillRect(bar.x + 2, y + 1, context.measureText(text).width + 4, BAR - 3);
      }
      context.fillStyle = isAbove ? colours.text : inkOn(colour);
      if (text) context.fillText(text, bar.x + 4, y + BAR / 2);
    }
    if (marked >= bar.from && marked < bar.to) {
      context.strokeStyle = colours.text;
      context.lineWidth = 2;
      context.strokeRect(bar.x + 1, y + 1, Math.max(w - 2, 1), BAR - 3);
    }
  }
}
