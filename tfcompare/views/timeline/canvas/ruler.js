// Draws what is above the lanes: the map of the whole profile, the ruler, and how far the candidate is behind.

// The ruler, and how far the candidate is behind the baseline.
function drawHead(canvas, { data, view, scale, colours, drift, ruler }) {
  const width = scale.left + scale.width;
  const height = ruler + drift;
  const context = prepare(canvas, width, height);
  context.font = `11px ${colours.font}`;
  context.textBaseline = "middle";
  const step = tickStep(scale.usPerPixel);
  const largest = Math.max(Math.abs(view.from), Math.abs(view.to));
  for (const time of ticks(view.from, view.to, step)) {
    const x = scale.x(time);
    context.fillStyle = colours.border;
    context.fillRect(x, ruler - 6, 1, height);
    context.fillStyle = colours.text;
    const text = tickLabel(time, step, largest);
    if (x + 4 + context.measureText(text).width < width) context.fillText(text, x + 4, ruler / 2 - 1);
  }
  if (drift) drawDrift(context, data, scale, colours, ruler, drift, width);
  drawRange(context, view, scale, colours, 0, height);
  if (view.range) drawRangeLabel(context, data, view.range, scale, colours, ruler);
}

// How long the measured range is, and, once it is known, what each side does in it.
function drawRangeLabel(context, { ranged }, [from, to], scale, colours, ruler) {
  const isKnown = ranged && Math.abs(ranged.range[0] - from) + Math.abs(ranged.range[1] - to) < 1e-3 * (to - from);
  const right = scale.left + scale.width;
  const whole = isKnown ? ranged.text : formatDuration(to - from);
  const text = context.measureText(whole).width + 12 < scale.width ? whole : formatDuration(to - from);
  const width = context.measureText(text).width + 12;
  const middle = (scale.x(from) + scale.x(to)) / 2 - width / 2;
  const x = Math.min(Math.max(middle, scale.left), right - width);
  context.fillStyle = colours.primary;
  context.fillRect(x, 1, width, ruler - 4);
  context.fillStyle = colours.back;
  context.fillText(text, x + 6, ruler / 2 - 1);
}

function drawDrift(context, data, scale, colours, top, height, width) {
  const { at, behind } = data.drift;
  let [low, high] = [0, 0];
  for (let i = 1; i < at.length; i++) {
    const [from, to] = [scale.x(at[i - 1]), scale.x(at[i])];
    if (to < scale.left || from > width) continue;
    // The part of the line within the window, which may begin or end between two points.
    for (const x of [Math.max(from, scale.left), Math.min(to, width)]) {
      const part = to > from ? (x - from) / (to - from) : 1;
      const value = behind[i - 1] + part * (behind[i] - behind[i - 1]);
      low = Math.min(low, value);
      high = Math.max(high, value);
    }
  }
  const least = Math.max(high - low, 1e-3);
  const y = (value) => top + 6 + ((high - value) / least) * (height - 14);
  context.save();
  context.beginPath();
  context.rect(scale.left, top, scale.width, height);
  context.clip();
  context.fillStyle = colours.border;
  context.fillRect(scale.left, y(0), scale.width, 1);
  for (let i = 1; i < at.length; i++) {
    const rise = behind[i] - behind[i - 1];
    context.strokeStyle = Math.abs(rise) < least * 0.01 ? colours.text : rise > 0 ? `rgb(${WORSE})` : `rgb(${BETTER})`;
    context.lineWidth = 1.8;
    context.beginPath();
    context.moveTo(scale.x(at[i - 1]), y(behind[i - 1]));
    context.lineTo(scale.x(at[i]), y(behind[i]));
    context.stroke();
  }
  drawDirections(context, scale, colours, top, height, y(0));
  context.restore();
  context.fillStyle = colours.text;
  let label = driftLabel(data, data.letters, scale, width);
  if (context.measureText(label[0]).width > scale.left - 8) label = driftLabel(data, data.marks, scale, width);
  label.forEach((line, i) => {
    context.globalAlpha = i ? 0.75 : 1;
    context.fillText(line, 4, top + 11 + 15 * i);
  });
  context.globalAlpha = 1;
}

// Where the curve ends: at the end of the compared step, or else at its last point at the right of the window. Hosts are
// together at the end of the collective, so of these it is how far apart they reach it.
function driftLabel(data, names, scale, width) {
  const { at, behind } = data.drift;
  const [ours, theirs] = names;
  if (data.clock) return clockLabel(data.clock, ours, theirs);
  const step = data.steps[0].find(([number]) => number === data.compared[0]);
  const end = step ? step[1] + step[2] : Infinity;
  let last = -1;
  for (let i = 0; i < at.length; i++) {
    const x = scale.x(at[i]);
    if (x < scale.left || x > width) continue;
    if (last < 0 || at[i] <= end + 1e-6) last = i;
  }
  if (last < 0) return [`${theirs} behind ${ours}`, "no pairs here"];
  const by = formatDuration(Math.abs(behind[last]));
  const isEnd = Math.abs(at[last] - end) < 1e-3;
  return [`${theirs} ${behind[last] < 0 ? "ahead of" : "behind"} ${ours}`, `${by} at ${isEnd ? "end" : "right"}`, `at times of ${ours}`];
}

// Which side of zero is which, where there is room for it.
function drawDirections(context, scale, colours, top, height, zero) {
  context.font = `10px ${colours.font}`;
  for (const [text, y, room] of [["↑ behind", zero - 8, zero - top], ["↓ ahead", zero + 9, top + height - zero]]) {
    if (room < 18) continue;
    const [x, width] = [scale.left + scale.width - 50, 50];
    context.fillStyle = colours.back;
    context.fillRect(x, y - 6, width, 12);
    context.fillStyle = colours.text;
    context.fillText(text, x + 3, y);
  }
  context.font = `11px ${colours.font}`;
}

function clockLabel({ error, late }, ours, theirs) {
  if (Math.abs(late) <= error) return [`${theirs} and ${ours}`, `within ${formatDuration(error)}`, "at the collective"];
  return [`${theirs} ${late < 0 ? "ahead of" : "behind"} ${ours}`, `${formatDuration(Math.abs(late))} at the collective`, `at times of ${ours}`];
}

// Where a time is on the map.
function mapScale(data, scale) {
  const [from, to] = extent(data);
  return (time) => scale.left + ((time - from) / Math.max(to - from, 1e-6)) * scale.width;
}

// The whole profile: the steps of each side, pale but for the compared one, and the window that is shown.
function drawMap(canvas, { data, view, scale, colours, height }) {
  const width = scale.left + scale.width;
  const context = prepare(canvas, width, height);
  const x = mapScale(data, scale);
  const strip = (height - 6) / data.colours.length;
  context.fillStyle = colours.band;
  context.fillRect(scale.left, 0, scale.width, height);
  data.steps.forEach((steps, side) => {
    let last = -1;
    for (const [number, start, duration] of steps) {
      const [left, right] = [x(start), x(start + duration)];
      if (right - last < 1 && number !== data.compared[side]) continue;
      last = right;
      context.globalAlpha = number === data.compared[side] ? 1 : 0.38;
      context.fillStyle = data.colours[side];
      context.fillRect(left, 3 + side * strip, Math.max(right - left - 1, 1), strip - 1);
    }
    if (!steps.length) {
      context.globalAlpha = 0.38;
      context.fillStyle = data.colours[side];
      const [left, right] = data.extents[side].map(x);
      context.fillRect(left, 3 + side * strip, Math.max(right - left, 1), strip - 1);
    }
    context.globalAlpha = 1;
    context.fillStyle = colours.text;
    context.font = `11px ${colours.font}`;
    context.textBaseline = "middle";
    if (data.colours.length > 1) context.fillText(data.marks[side], scale.left - 16, 3 + (side + 0.5) * strip);
  });
  context.fillStyle = colours.text;
  context.fillText(data.steps.some((steps) => steps.length) ? "Steps" : "Whole profile", 4, height / 2);
  const [left, right] = [Math.max(x(view.from), scale.left), Math.min(x(view.to), width)];
  context.strokeStyle = colours.primary;
  context.lineWidth = 2;
  context.fillStyle = colours.primary;
  context.globalAlpha = 0.12;
  context.fillRect(left, 0, Math.max(right - left, 3), height);
  context.globalAlpha = 1;
  context.strokeRect(left, 1, Math.max(right - left, 3), height - 2);
}
