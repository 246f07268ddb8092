// Times as text, ticks, and where lanes are. Times are in µs of the common axis.

const ROW = 15; // pixels
const LANE_GAP = 9;
const SIDE_GAP = 3;
const MOST_ROWS = 64; // of a side of a lane, as in views/timeline/lanes.py

function formatTime(us) {
  const [unit, name] = unitOf(Math.abs(us));
  const digits = Math.ceil(2 - Math.log10(Math.max(Math.abs(us) / unit, 1e-9)));
  return `${(us / unit).toFixed(Math.max(0, Math.min(digits, 3))).replace("-", "−")} ${name}`;
}

// The distance of ticks that are at least `pixels` apart: 1, 2 or 5 times a power of ten.
function tickStep(usPerPixel, pixels = 96) {
  const least = usPerPixel * pixels;
  const power = 10 ** Math.floor(Math.log10(least));
  return power * [1, 2, 5, 10].find((factor) => factor * power >= least);
}

function ticks(from, to, step) {
  const first = Math.ceil(from / step);
  const count = Math.max(Math.floor(to / step) - first + 1, 0);
  return Array.from({ length: count }, (_, i) => (first + i) * step);
}

// A tick's label in the unit of its distance to the next, so that all ticks share one.
function tickLabel(us, step, largest) {
  const [unit, name] = unitOf(largest);
  const digits = Math.max(0, -Math.floor(Math.log10(step / unit) + 1e-9));
  return `${(us / unit).toFixed(Math.min(digits, 6)).replace("-", "−")} ${name}`;
}

// How many rows of each side of a lane are shown.
function rowsShown(lane, data, view, position) {
  const most = view.folded.has(position) ? 1 : view.opened.has(position) ? Infinity : data.rows;
  return lane.rows.map((count) => Math.min(count, most));
}

// For each lane that is shown: `position`, `top` and `height` in pixels, and `tops` of each side's first row.
function placeLanes(data, view) {
  const places = [];
  let top = LANE_GAP;
  const chosen = new Set((data.selected ?? []).map((one) => one.lane));
  data.lanes.forEach((lane, position) => {
    if (lane.idle && !view.all && !chosen.has(position)) return;
    const rows = rowsShown(lane, data, view, position);
    const tops = [];
    let at = top;
    rows.forEach((count) => {
      tops.push(at);
      at += Math.max(count, 1) * ROW + SIDE_GAP;
    });
    places.push({ position, lane, rows, top, tops, height: at - SIDE_GAP - top });
    top = at - SIDE_GAP + LANE_GAP;
  });
  return { places, of: new Map(places.map((place) => [place.position, place])), height: top };
}

// From the first start to the last end on either side.
function extent(data) {
  return [Math.min(...data.extents.map(([from]) => from)), Math.max(...data.extents.map(([, to]) => to))];
}
