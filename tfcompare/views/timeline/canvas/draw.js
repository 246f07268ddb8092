// Draws the lanes on a canvas. Names are drawn as text only, never as HTML.

const KINDS = ["#4C78A8", "#B279A2", "#72B7B2", "#E0A030", "#54A24B", "#9D755D", "#D67195", "#7B6FD0"];
const LIGHT_KINDS = new Set(["#72B7B2", "#E0A030", "#54A24B", "#B279A2", "#D67195"]); // white on these has too little contrast

// Whether a span is compared with others: its partner, or all kernels of its op.
function hasChange(spans, i) {
  return spans.status[i] === 1 || spans.status[i] === 3;
}

function colourOf(spans, i, look, colours) {
  if (look.colour === "type") return spans.kind[i] < KINDS.length ? KINDS[spans.kind[i]] : colours.neutral;
  if (!hasChange(spans, i)) return spans.status[i] === 2 ? colours.alone : colours.neutral;
  return shadeOf(spans.change[i], colours);
}

// Where a span is on the canvas: left, top, width; null if its lane or row is not shown.
function boxOf(place, side, row, start, duration, scale) {
  if (!place || row >= place.rows[side]) return null;
  return { x: scale.x(start), y: place.tops[side] + row * ROW, w: duration / scale.usPerPixel };
}

function boxOfSpan(lanes, spans, i, scale) {
  return boxOf(lanes.of.get(spans.lane[i]), spans.side[i], spans.row[i], spans.start[i], spans.duration[i], scale);
}

function drawLanes(context, { data, index, lanes, view, scale, look, colours, top, height, hover }) {
  const { spans } = data;
  const width = scale.left + scale.width;
  context.save();
  context.translate(0, -top);
  drawBands(context, data, lanes, scale, colours, width, top, height);
  context.save();
  context.beginPath();
  context.rect(scale.left, top, scale.width, height);
  context.clip();
  context.font = `11px ${colours.font}`;
  context.textBaseline = "middle";
  const hasMarks = look.find !== "";
  for (let i = 0; i < spans.start.length; i++) {
    const box = boxOfSpan(lanes, spans, i, scale);
    if (!box || box.x > width || box.x + box.w < scale.left || box.y > top + height || box.y + ROW < top) continue;
    const w = Math.max(box.w, 1);
    const isDim = hasMarks && !spans.marked[i];
    context.globalAlpha = (isDim ? 0.25 : 1) * (spans.count[i] > 1 ? 0.45 + 0.55 * spans.busy[i] : 1);
    context.fillStyle = colourOf(spans, i, look, colours);
    context.fillRect(box.x, box.y, w > 3 ? w - 0.6 : w, ROW - 1);
    if (spans.status[i] === 2 && look.colour !== "type") {
      context.fillStyle = colours.hatch;
      context.fillRect(box.x, box.y, w > 3 ? w - 0.6 : w, ROW - 1);
    }
    if (hasMarks && !isDim) outline(context, box, w, colours.text, 1);
    if (w > 34) drawName(context, data.names[spans.name[i]], spans, i, box, w, scale, colours, look);
  }
  context.globalAlpha = 1;
  drawPairs(context, data, index, lanes, scale, colours, hover);
  drawRange(context, view, scale, colours, top, height);
  context.restore();
  drawLabels(context, data, lanes, view, scale, colours, top, height);
  context.restore();
}

// Bands behind the lanes, and the borders of the compared step.
function drawBands(context, data, lanes, scale, colours, width, top, height) {
  for (const place of lanes.places) {
    if (place.top > top + height || place.top + place.height < top) continue;
    context.fillStyle = colours.band;
    context.fillRect(scale.left, place.top - 2, scale.width, place.height + 3);
  }
  data.steps.forEach((steps, side) => {
    context.fillStyle = data.colours[side];
    for (const [number, start, duration] of steps) {
      if (number !== data.compared[side]) continue;
      context.globalAlpha = 0.5;
      for (const time of [start, start + duration]) {
        const x = scale.x(time);
        if (x >= scale.left && x <= width) context.fillRect(x, top, 1, height);
      }
      context.globalAlpha = 1;
    }
  });
}

function drawName(context, name, spans, i, box, width, scale, colours, look) {
  const from = Math.max(box.x, scale.left) + 3;
  const room = Math.min(box.x + width, scale.left + scale.width) - from - 3;
  const letters = Math.floor(room / 6);
  if (letters < 4) return;
  const text = spans.count[i] > 1 ? `${spans.count[i]} × ${name}` : name;
  const kind = look.colour === "type" ? KINDS[spans.kind[i]] : undefined;
  const isStrong = look.colour !== "type" && hasChange(spans, i) && Math.abs(spans.change[i]) > 0.45;
  context.fillStyle = kind ? (LIGHT_KINDS.has(kind) ? "#1b2430" : "#ffffff") : isStrong ? "#ffffff" : colours.text;
  context.fillText(text.length > letters ? `${text.slice(0, letters - 1)}…` : text, from, box.y + ROW / 2);
}

function outline(context, box, width, colour, thickness) {
  context.strokeStyle = colour;
  context.lineWidth = thickness;
  context.strokeRect(box.x, box.y, Math.max(width, 2), ROW - 1);
}

// The selected span, its partner, the ribbon between them, and the calls that launched them; the same for the span
// under the pointer, as far as its partner is drawn.
function drawPairs(context, data, index, lanes, scale, colours, hover) {
  const boxes = (data.selected ?? []).map((one) => ({
    ...one, box: boxOf(lanes.of.get(one.lane), one.side, one.row, one.start, one.duration, scale),
  })).filter((one) => one.box);
  if (boxes.length === 2) ribbon(context, boxes[0].box, boxes[1].box, colours.primary, 0.28);
  for (const one of boxes) {
    outline(context, one.box, one.box.w, colours.text, 2);
    const from = one.launch && boxOf(lanes.of.get(one.launch.lane), one.side, one.launch.row, one.launch.start, one.launch.duration, scale);
    if (from) {
      outline(context, from, from.w, colours.primary, 1.5);
      context.strokeStyle = colours.primary;
      context.lineWidth = 1.5;
      context.beginPath();
      context.moveTo(from.x, from.y + ROW / 2);
      context.lineTo(one.box.x, one.box.y + ROW / 2);
      context.stroke();
    }
  }
  if (hover < 0) return;
  const { spans } = data;
  const own = boxOfSpan(lanes, spans, hover, scale);
  if (!own) return;
  outline(context, own, own.w, colours.text, 1);
  const partner = partnerOf(spans, index, hover);
  if (partner < 0) return;
  const box = boxOfSpan(lanes, spans, partner, scale);
  if (!box) return;
  outline(context, box, box.w, colours.text, 1);
  ribbon(context, own, box, colours.text, 0.16);
}

function ribbon(context, one, other, colour, alpha) {
  const [upper, lower] = one.y <= other.y ? [one, other] : [other, one];
  const [y1, y2] = [upper.y + ROW - 1, lower.y];
  context.globalAlpha = alpha;
  context.fillStyle = colour;
  context.beginPath();
  context.moveTo(upper.x, y1);
  context.lineTo(upper.x + Math.max(upper.w, 2), y1);
  context.lineTo(lower.x + Math.max(lower.w, 2), y2);
  context.lineTo(lower.x, y2);
  context.fill();
  context.globalAlpha = 1;
}

function drawRange(context, view, scale, colours, top, height) {
  if (!view.range) return;
  const [from, to] = view.range.map(scale.x);
  context.globalAlpha = 0.14;
  context.fillStyle = colours.primary;
  context.fillRect(from, top, to - from, height);
  context.globalAlpha = 1;
  context.fillRect(from, top, 1, height);
  context.fillRect(to, top, 1, height);
}

function drawLabels(context, data, lanes, view, scale, colours, top, height) {
  context.fillStyle = colours.back;
  context.fillRect(0, top, scale.left, height);
  context.textBaseline = "middle";
  for (const { position, lane, tops, rows, top: y, height: h } of lanes.places) {
    if (y > top + height || y + h < top) continue;
    const hidden = Math.max(...lane.rows) > Math.max(...rows);
    const sign = Math.max(...lane.rows) > 1 ? (view.folded.has(position) ? "▸ " : hidden ? "▹ " : "▾ ") : "";
    tops.forEach((at, side) => {
      context.fillStyle = data.colours[side];
      context.fillRect(scale.left - 5, at, 3, Math.max(rows[side], 1) * ROW - 1);
      if (data.colours.length < 2) return;
      context.font = `600 10px ${colours.font}`;
      context.fillText(data.marks[side], scale.left - 16, at + ROW / 2);
      if (lane.rows[side]) return;
      context.fillStyle = colours.text;
      context.globalAlpha = 0.6;
      context.font = `11px ${colours.font}`;
      context.fillText("no such lane", scale.left + 6, at + ROW / 2);
      context.globalAlpha = 1;
    });
    context.font = `11px ${colours.font}`;
    context.fillStyle = colours.text;
    const room = scale.left - 24 - context.measureText(sign).width;
    const lines = wrapLabel(context, lane.label, room, h >= 2 * ROW ? 2 : 1);
    lines.forEach((line, i) => context.fillText((i ? "" : sign) + line, 4, y + ROW / 2 + i * 13));
  }
}

// A label in at most `most` lines, the last one cut before its end: names of threads and streams end with a number.
function wrapLabel(context, text, room, most) {
  const lines = [];
  let rest = text;
  while (rest && lines.length < most) {
    let fits = rest.length;
    while (fits > 1 && context.measureText(rest.slice(0, fits)).width > room) fits--;
    if (fits < rest.length && lines.length === most - 1) {
      lines.push(`${rest.slice(0, Math.max(fits - 4, 1))}…${rest.slice(-3)}`);
      break;
    }
    const space = fits < rest.length ? rest.lastIndexOf(" ", fits) : -1;
    const cut = space > fits / 3 ? space : fits;
    lines.push(rest.slice(0, cut));
    rest = rest.slice(cut).trimStart();
  }
  return lines;
}
