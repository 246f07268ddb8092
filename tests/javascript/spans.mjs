// Timelines of a few spans, as the drawing gets them.

const DEFAULTS = { side: 0, lane: 0, row: 0, start: 0, duration: 10, status: 1, change: 0, partner: -1, kind: 0, name: 0, count: 1, busy: 1, marked: 0 };

// Columns of spans that differ from the defaults in what is given; the `id` of each is its position.
export function columns(spans) {
  const rows = spans.map((span, id) => ({ ...DEFAULTS, id, ...span }));
  return Object.fromEntries(["id", ...Object.keys(DEFAULTS)].map((name) => [name, rows.map((row) => row[name])]));
}

// What is drawn of spans in lanes that have `rows` rows on each side; one pixel is 1 µs, time 0 is at x = 100.
export function timeline({ placeLanes, indexSpans }, spans, { rows = [[1, 1]], ...others } = {}) {
  const data = {
    spans: columns(spans), lanes: rows.map((own, i) => ({ label: `lane ${i}`, rows: own, idle: false })), rows: 3, selected: [],
    steps: [[], []], compared: [], home: [0, 1000], names: ["matmul"], letters: ["A", "B"], marks: ["A", "B"], colours: ["red", "green"],
    ...others,
  };
  const view = { from: 0, to: 1000, range: null, all: false, opened: new Set(), folded: new Set() };
  const scale = { left: 100, width: 1000, usPerPixel: 1, x: (time) => 100 + time, time: (x) => x - 100 };
  return { data, view, scale, lanes: placeLanes(data, view), index: indexSpans(data.spans) };
}
