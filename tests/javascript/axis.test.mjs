import assert from "node:assert/strict";
import test from "node:test";

import { importTimeline } from "./scripts.mjs";

const { extent, formatDuration, formatTime, placeLanes, tickLabel, ticks, tickStep } = await importTimeline();

test("a time has the unit of its size, and three digits", () => {
  const texts = [0, 0.25, 1, 12.345, -999, 1234.5, 2.5e6].map(formatTime);
  assert.deepEqual(texts, ["0.000 µs", "250 ns", "1.00 µs", "12.3 µs", "−999 µs", "1.23 ms", "2.50 s"]);
});

test("a duration has the unit of its size, and three digits", () => {
  const texts = [0, 0.5, 1, 12.345, 999.7, 1000, 3.2e6].map(formatDuration);
  assert.deepEqual(texts, ["0.00 µs", "500 ns", "1.00 µs", "12.3 µs", "1000 µs", "1.00 ms", "3.20 s"]);
});

test("ticks are 1, 2 or 5 times a power of ten apart, and as near as there is room for", () => {
  assert.deepEqual([0.1, 1, 2, 3, 6].map((usPerPixel) => tickStep(usPerPixel, 100)), [10, 100, 200, 500, 1000]);
  for (let usPerPixel = 1e-3; usPerPixel < 1e5; usPerPixel *= 1.37) {
    const pixels = tickStep(usPerPixel) / usPerPixel;
    assert.ok(pixels >= 96 && pixels <= 96 * 2.5, `${pixels} pixels apart at ${usPerPixel} µs per pixel`);
  }
});

test("ticks are the multiples of their distance within the window", () => {
  assert.deepEqual(ticks(-250, 200, 100), [-200, -100, 0, 100, 200]);
  assert.deepEqual(ticks(101, 199, 100), []);
});

test("all ticks have the unit of the largest, and the digits of their distance", () => {
  assert.deepEqual([0, 500, 1500].map((us) => tickLabel(us, 500, 1500)), ["0.0 ms", "0.5 ms", "1.5 ms"]);
  assert.equal(tickLabel(-20, 20, 100), "−20 µs");
});

const LANES = [
  { rows: [5, 1], idle: false },
  { rows: [1, 0], idle: true },
  { rows: [2, 2], idle: false },
];

function placed({ opened = [], folded = [], all = false, selected } = {}) {
  const view = { opened: new Set(opened), folded: new Set(folded), all };
  return placeLanes({ lanes: LANES, rows: 3, selected }, view);
}

test("lanes stand below one another, the sides of each with their rows", () => {
  const { places, of, height } = placed();
  const found = places.map(({ position, rows, top, tops, height: own }) => ({ position, rows, top, tops, own }));
  assert.deepEqual(found, [
    { position: 0, rows: [3, 1], top: 9, tops: [9, 57], own: 63 },
    { position: 2, rows: [2, 2], top: 81, tops: [81, 114], own: 63 },
  ]);
  assert.equal(height, 153);
  assert.equal(of.get(2), places[1]);
});

test("an opened lane has all of its rows, a folded one has one", () => {
  assert.deepEqual(placed({ opened: [0], folded: [2] }).places.map(({ rows }) => rows), [[5, 1], [1, 1]]);
});

test("an idle lane is shown where all are, or where a span of it is selected", () => {
  for (const choice of [{ all: true }, { selected: [{ lane: 1 }] }]) {
    const { places } = placed(choice);
    assert.deepEqual(places.map(({ position }) => position), [0, 1, 2]);
    assert.equal(places[1].height, 33, "the side without the lane has the room of a row");
  }
});

test("the extent is from the first start to the last end of either side", () => {
  assert.deepEqual(extent({ extents: [[-5, 80], [0, 100]] }), [-5, 100]);
});
