import assert from "node:assert/strict";
import test from "node:test";

import { recordingCanvas, recordingContext } from "./canvas.mjs";
import { importTimeline } from "./scripts.mjs";
import { timeline } from "./spans.mjs";

const module = await importTimeline();
const { drawHead, drawLanes, drawMap, KINDS, prepare, wrapLabel } = module;

const shades = ["faster", "slower"].map((name) => Array.from({ length: 11 }, (_, i) => `${name} ${i}`));
const COLOURS = { text: "text", back: "back", band: "band", border: "border", primary: "primary", neutral: "neutral", alone: "alone", hatch: "hatch", shades };
const TOP = 9; // of the baseline's first row; the candidate's is 18 pixels below

// What is drawn of spans right of the names of the lanes, without the bands behind them.
function drawnOf(spans, { look = {}, hover = -1, range = null, window = [0, 1000], ...others } = {}) {
  const { data, index, lanes, view, scale } = timeline(module, spans, others);
  view.range = range;
  const context = recordingContext();
  const [top, height] = [0, 500];
  drawLanes(context, {
    data, index, lanes, view, hover, colours: COLOURS, top, height, look: { colour: "change", find: "", ...look },
    scale: { ...scale, x: (time) => 100 + time - window[0] },
  });
  const labels = context.drawn.findIndex(({ what, colour }) => what === "fillRect" && colour === "back");
  return { spans: context.drawn.slice(0, labels).filter(({ colour }) => colour !== "band"), labels: context.drawn.slice(labels + 1), all: context.drawn };
}

const only = (what, drawn) => drawn.filter((one) => one.what === what);

test("a span is drawn where its time, side and row are", () => {
  const spans = [{ start: 50, duration: 30 }, { start: 200, duration: 20, side: 1 }, { start: 55, duration: 9, row: 1 }];
  const places = drawnOf(spans, { rows: [[2, 1]] }).spans.map(({ at }) => at);
  assert.deepEqual(places, [[150, TOP, 29.4, 14], [300, TOP + 33, 19.4, 14], [155, TOP + 15, 8.4, 14]]);
});

test("a span is drawn one pixel wide at least, and not where it is out of sight", () => {
  assert.deepEqual(drawnOf([{ start: 5, duration: 0.01 }]).spans.map(({ at }) => at), [[105, TOP, 1, 14]]);
  const outside = [{ start: 0, duration: 40 }, { start: 1200 }, { start: 100, row: 1 }, { start: 100, lane: 9 }];
  assert.deepEqual(drawnOf(outside, { window: [50, 1050] }).spans, []);
});

test("the colour says how much slower or faster a span is", () => {
  const spans = [1, -1, 3, 0.5, 0.06, 0.08].map((change, i) => ({ start: 20 * i, change }));
  const colours = drawnOf([...spans, { start: 500, status: 0 }]).spans.map(({ colour }) => colour);
  assert.deepEqual(colours, ["slower 10", "faster 10", "slower 10", "slower 5", "slower 0", "slower 2", "neutral"]);
});

test("a span of one side alone is hatched, unless colours are those of types", () => {
  const spans = [{ status: 2, kind: 1 }, { start: 50, kind: 99 }];
  assert.deepEqual(drawnOf(spans).spans.map(({ colour }) => colour), ["alone", "hatch", "slower 0"]);
  assert.deepEqual(drawnOf(spans, { look: { colour: "type" } }).spans.map(({ colour }) => colour), [KINDS[1], "neutral"]);
});

test("several spans drawn as one are paler, the less of the time they run", () => {
  const spans = [{ count: 1 }, { start: 20, count: 5, busy: 1 }, { start: 40, count: 5, busy: 0 }];
  assert.deepEqual(drawnOf(spans).spans.map(({ alpha }) => alpha), [1, 1, 0.45]);
});

test("a span that was searched for is outlined, the others are dim", () => {
  const { spans } = drawnOf([{ marked: 1 }, { start: 50 }], { look: { find: "matmul" } });
  assert.deepEqual(spans.map(({ what, alpha }) => [what, alpha]), [["fillRect", 1], ["strokeRect", 1], ["fillRect", 0.25]]);
});

test("a name is written where there is room for four letters, cut to the room", () => {
  const names = ["convolution"];
  const textOf = (span) => only("fillText", drawnOf([span], { names }).spans).map(({ text }) => text);
  assert.deepEqual(textOf({ duration: 100 }), ["convolution"]);
  assert.deepEqual(textOf({ duration: 100, count: 12 }), ["12 × convoluti…"]);
  assert.deepEqual(textOf({ duration: 40 }), ["conv…"]);
  assert.deepEqual(textOf({ start: 977, duration: 100 }), [], "cut at the end of the window");
  assert.deepEqual(textOf({ start: 965, duration: 100 }), ["con…"]);
});

test("a selected span and its partner are outlined and joined, and a line leads from the launch", () => {
  const launch = { lane: 1, row: 0, start: 10, duration: 5 };
  const selected = [{ lane: 0, side: 0, row: 0, start: 100, duration: 50, launch }, { lane: 0, side: 1, row: 0, start: 200, duration: 80 }];
  const [ribbon, outline, ofLaunch, line, ofPartner] = drawnOf([], { selected, rows: [[1, 1], [1, 1]] }).spans;
  assert.deepEqual([ribbon.what, ribbon.colour, ribbon.alpha], ["fill", "primary", 0.28]);
  assert.deepEqual(ribbon.at.map(([x]) => x), [200, 250, 380, 300]);
  assert.deepEqual([outline.at, ofPartner.at], [[200, TOP, 50, 14], [300, TOP + 18, 80, 14]]);
  assert.deepEqual([ofLaunch.colour, ofLaunch.at], ["primary", [110, 51, 5, 14]]);
  assert.deepEqual([line.what, line.at], ["stroke", [[110, 58.5], [200, 16.5]]]);
});

test("the span under the pointer is outlined and joined to its partner", () => {
  const { spans } = drawnOf([{ id: 3, partner: 4 }, { id: 4, side: 1, start: 60, partner: 3 }], { hover: 0 });
  assert.deepEqual(only("strokeRect", spans).map(({ at }) => at), [[100, TOP, 10, 14], [160, TOP + 18, 10, 14]]);
  assert.deepEqual(only("fill", spans).map(({ at }) => at.map(([x]) => x)), [[100, 110, 170, 160]]);
});

test("a range is shaded between its two ends", () => {
  const places = drawnOf([], { range: [200, 300] }).spans.map(({ at, alpha }) => [...at, alpha]);
  assert.deepEqual(places, [[300, 0, 100, 500, 0.14], [300, 0, 1, 500, 1], [400, 0, 1, 500, 1]]);
});

test("the compared step of each side has its borders in the side's colour", () => {
  const { spans } = drawnOf([], { steps: [[[1, 0, 90], [2, 100, 300]], [[2, 100, 2000]]], compared: [2, 2] });
  assert.deepEqual(spans.map(({ at, colour }) => [colour, at[0]]), [["red", 200], ["red", 500], ["green", 200]]);
});

test("a lane has its name with a sign for its rows, its sides a bar and a letter, and says where one has no such lane", () => {
  const texts = (others) => only("fillText", drawnOf([], others).labels).map(({ text }) => text);
  assert.deepEqual(texts({ rows: [[2, 1]] }), ["A", "B", "▾ lane 0"]);
  assert.deepEqual(texts({ rows: [[9, 1]] }), ["A", "B", "▹ lane 0"]);
  assert.deepEqual(texts({ rows: [[1, 0]] }), ["A", "B", "no such lane", "lane 0"]);
  assert.deepEqual(texts({ rows: [[1]], colours: ["red"] }), ["lane 0"]);
});

test("a long label is wrapped at a space, and cut before its end in the last line", () => {
  const context = recordingContext();
  assert.deepEqual(wrapLabel(context, "stream 17 compute", 120, 2), ["stream 17 compute"]);
  assert.deepEqual(wrapLabel(context, "stream 17 compute", 72, 2), ["stream 17", "compute"]);
  assert.deepEqual(wrapLabel(context, "tf_data_private_threadpool/12345", 90, 2), ["tf_data_private", "_threadpool…345"]);
});

globalThis.window = { devicePixelRatio: 2 };

test("a canvas is as sharp as the screen", () => {
  const canvas = recordingCanvas();
  prepare(canvas, 300, 40.2);
  assert.deepEqual([canvas.width, canvas.height, canvas.style.width], [600, 80, "300px"]);
});

function headOf({ behind, usPerPixel = 1, ...others } = {}) {
  const { data, view, scale } = timeline(module, [], { drift: { at: [0, 400, 800], behind }, ...others });
  Object.assign(scale, { usPerPixel });
  const canvas = recordingCanvas();
  drawHead(canvas, { data, view, scale, colours: COLOURS, ruler: 22, drift: behind ? 58 : 0 });
  return canvas.drawn;
}

test("the ruler has ticks with their times, as far as the text has room", () => {
  const drawn = headOf({ usPerPixel: 2 });
  assert.deepEqual(only("fillRect", drawn).map(({ at }) => at[0]), [100, 300, 500, 700, 900, 1100]);
  assert.deepEqual(only("fillText", drawn).map(({ text }) => text), ["0.0 ms", "0.2 ms", "0.4 ms", "0.6 ms", "0.8 ms"]);
});

test("the drift climbs in the colour of slower and falls in that of faster", () => {
  const lines = only("stroke", headOf({ behind: [0, 20, -20] }));
  assert.deepEqual(lines.map(({ colour }) => colour), ["rgb(221,107,0)", "rgb(43,123,214)"]);
  assert.deepEqual(lines[0].at.map(([x]) => x), [100, 500]);
  assert.ok(lines[0].at[0][1] > lines[0].at[1][1], "behind is up");
});

test("the label of the drift is what it is at the end of the compared step, or at the right", () => {
  const label = (others) => only("fillText", headOf({ behind: [0, 20, -30], ...others })).slice(-3).map(({ text }) => text);
  assert.deepEqual(label(), ["B ahead of A", "30.0 µs at right", "at times of A"]);
  assert.deepEqual(label({ steps: [[[5, 0, 400]], []], compared: [5] }), ["B behind A", "20.0 µs at end", "at times of A"]);
  assert.deepEqual(label({ clock: { error: 9, late: 4 } }), ["B and A", "within 9.00 µs", "at the collective"]);
  assert.deepEqual(label({ clock: { error: 1, late: 4 } }), ["B behind A", "4.00 µs at the collective", "at times of A"]);
});

test("the map has the steps of each side, pale but for the compared one, and the window in sight", () => {
  const { data, view, scale } = timeline(module, [], {
    steps: [[[1, 0, 500], [2, 500, 500]], []], compared: [2, 0], extents: [[0, 1000], [0, 2000]],
  });
  const canvas = recordingCanvas();
  drawMap(canvas, { data, view, scale, colours: COLOURS, height: 30 });
  const steps = only("fillRect", canvas.drawn).filter(({ colour }) => colour === "red" || colour === "green");
  assert.deepEqual(steps.map(({ at, alpha }) => [...at.slice(0, 3), alpha]), [[100, 3, 249, 0.38], [350, 3, 249, 1], [100, 15, 1000, 0.38]]);
  assert.deepEqual(only("strokeRect", canvas.drawn).map(({ at }) => at), [[100, 1, 500, 28]]);
});
