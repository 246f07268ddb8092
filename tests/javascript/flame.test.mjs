import assert from "node:assert/strict";
import test from "node:test";

import { recordingContext } from "./canvas.mjs";
import { importFlame } from "./scripts.mjs";

const { BAR, barAt, describeBar, indexNodes, inkOn, neighbour, paintBars, placeBars, valueOf } = await importFlame();

// model (100): decoder (60): kernel (40), bias (20); encoder (39.8): conv (39.6) and two of 0.1; and loss (10).
const NODES = {
  parent: [-1, -1, 0, 0, 2, 2, 3, 3, 3],
  depth: [0, 0, 1, 1, 2, 2, 2, 2, 2],
  left: [0, 100, 0, 60, 0, 40, 60, 99.6, 99.7],
  width: [100, 10, 60, 39.8, 40, 20, 39.6, 0.1, 0.1],
  baseline: [90, 10, 60, 30, 40, 20, 29.8, 0.1, 0.1],
  candidate: [60, 10, 20, 40, 20, null, 39.6, 0.1, 0.3],
  status: [0, 0, 0, 0, 0, 2, 1, 0, 0],
  change: [-0.5, 0, -1, 0.4, -1, -1, 1, 0, 1],
  label: [0, 1, 2, 3, 4, 5, 6, 7, 8],
  verdict: [0, -1, 0, -1, -1, -1, -1, -1, -1],
};
const LABELS = ["model", "loss", "decoder", "encoder", "kernel", "bias", "conv", "a", "b"];
const DATA = { nodes: NODES, labels: LABELS, verdicts: ["▼ faster"], sides: ["before", "after"], isPlain: false, isJudged: true };
const INDEX = indexNodes(NODES);
const shades = ["less", "more"].map((name, i) => Array.from({ length: 11 }, (_one, shade) => `rgb(${i},${shade},0)`));
const COLOURS = { text: "text", font: "font", shades, hatches: ["added", "removed"] };

const placed = (focus, width) => placeBars(NODES, INDEX, focus, width).map(({ from, to, x, w, row }) => [from, to, Math.round(x), Math.round(w), row]);

test("all bars fill the width, each below its parent", () => {
  const bars = placed(-1, 1100);
  assert.deepEqual(bars.slice(0, 4), [[0, 1, 0, 1000, 0], [1, 2, 1000, 100, 0], [2, 3, 0, 600, 1], [3, 4, 600, 398, 1]]);
  assert.deepEqual(bars.filter(([, , , , row]) => row === 2).map(([from]) => from), [4, 5, 6, 7, 8]);
});

test("siblings that are too narrow to see are one bar, and none where that is too narrow as well", () => {
  assert.deepEqual(placed(-1, 550).at(-1), [7, 9, 498, 1, 2]);
  assert.deepEqual(placed(-1, 110).filter(([from]) => from > 5), [[6, 7, 60, 40, 2]]);
});

test("a node that is zoomed into is as wide as all, and so is what is above it", () => {
  assert.deepEqual(placed(3, 398), [[0, 1, 0, 398, 0], [3, 4, 0, 398, 1], [6, 7, 0, 396, 2], [7, 8, 396, 1, 2], [8, 9, 397, 1, 2]]);
  assert.deepEqual(placed(4, 100), [[0, 1, 0, 100, 0], [2, 3, 0, 100, 1], [4, 5, 0, 100, 2]]);
});

test("the bar under the pointer is found by its row and its x", () => {
  const bars = placeBars(NODES, INDEX, -1, 1100);
  assert.equal(barAt(bars, 700, 1.5 * BAR).from, 3);
  assert.equal(barAt(bars, 1050, 1.5 * BAR), undefined);
});

test("keys lead to the parent, to the widest child and to siblings", () => {
  const to = (from, key) => neighbour(NODES, INDEX, from, `Arrow${key}`);
  assert.deepEqual([to(-1, "Down"), to(0, "Down"), to(3, "Down"), to(3, "Up"), to(2, "Right"), to(3, "Left")], [0, 2, 6, 0, 3, 2]);
  assert.deepEqual([to(4, "Down"), to(0, "Up"), to(3, "Right"), to(2, "Left"), to(1, "Right")], [-1, -1, -1, -1, -1]);
});

test("a bar says its path, its times, the change and the verdict", () => {
  const said = (from, to = from + 1, data = DATA) => describeBar(data, { from, to }).split("\n");
  assert.deepEqual(said(2), ["model › decoder", "before: 60.0 µs", "after: 20.0 µs", "change −40.0 µs, 0.333×", "▼ faster"]);
  assert.deepEqual(said(1), ["loss", "before: 10.0 µs", "after: 10.0 µs", "change ±0, 1.00×"]);
  assert.deepEqual(said(6).at(-1), "only in after");
  assert.deepEqual(said(5), ["model › decoder › bias", "before: 20.0 µs", "after: –"], "what is unknown has no change");
  assert.deepEqual(said(7, 9), ["2 smaller, in model › encoder", "before: 200 ns", "after: 400 ns", "change +200 ns, 2.00×"]);
  assert.deepEqual(said(2, 3, { ...DATA, sides: ["only"] }), ["model › decoder", "60.0 µs"]);
});

test("a label is followed by the change, or by the time of a run alone", () => {
  const value = (from, data = DATA) => valueOf(data, { from, to: from + 1 });
  assert.deepEqual([0, 1, 3, 5, 6].map((i) => value(i)), ["−30.0 µs", "±0", "+10.0 µs", "", "added +9.80 µs"]);
  assert.equal(value(0, { ...DATA, sides: ["only"], isPlain: true }), "90.0 µs");
  assert.equal(value(0, { ...DATA, isPlain: true }), "", "of unrelated programs, a difference is no change");
});

function painted(data, { focus = -1, marked = -1, width = 1100 } = {}) {
  const context = recordingContext();
  paintBars(context, { data, bars: placeBars(data.nodes, INDEX, focus, width), colours: COLOURS, top: 0, height: 500, marked, focus });
  return context.drawn;
}

test("colours are those of the change: the one of less time, the other of more, grey without", () => {
  const [model, loss, decoder, encoder] = painted(DATA).filter(({ what }) => what === "fillRect");
  assert.deepEqual([model, loss, decoder, encoder].map(({ colour }) => colour), ["rgb(0,5,0)", "rgb(1,0,0)", "rgb(0,10,0)", "rgb(1,4,0)"]);
});

test("what one run alone has is hatched in a direction of its own", () => {
  const hatched = painted(DATA).filter(({ colour }) => ["added", "removed"].includes(colour));
  assert.deepEqual(hatched.map(({ colour, at }) => [colour, Math.round(at[0])]), [["removed", 400], ["added", 600]]);
  assert.ok(!painted({ ...DATA, isPlain: true }).some(({ colour }) => colour === "added"));
});

test("a name is cut before the change is left out", () => {
  const labels = LABELS.map((name) => name.repeat(9));
  const texts = painted({ ...DATA, labels }, { width: 330 }).filter(({ what }) => what === "fillText").map(({ text }) => text);
  assert.match(texts[0], /^model.*….*model {2}−30\.0 µs$/);
  assert.ok(texts.every((text) => 6 * text.length <= 330));
});

test("the bar under the pointer is outlined, and what is above the zoomed node is paler", () => {
  const drawn = painted(DATA, { focus: 2, marked: 2 });
  assert.equal(drawn.filter(({ what }) => what === "strokeRect").length, 1);
  assert.deepEqual(drawn.filter(({ what }) => what === "fillRect").slice(0, 2).map(({ alpha }) => alpha), [0.55, 1]);
});

test("names are dark on pale colours and on orange, white on blue", () => {
  const [pale, orange, blue] = ["rgb(176,186,198)", "rgb(221,107,0)", "rgb(43,123,214)"].map(inkOn);
  assert.deepEqual([pale, orange, blue], ["#1b2430", "#1b2430", "#ffffff"]);
});
