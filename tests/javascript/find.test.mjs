import assert from "node:assert/strict";
import test from "node:test";

import { importTimeline } from "./scripts.mjs";
import { columns, timeline } from "./spans.mjs";

const module = await importTimeline();
const { gapAt, indexSpans, nextPair, partnerOf, spanAt } = module;

const SPANS = columns([
  { start: 0, duration: 10 },
  { start: 20, duration: 10 },
  { start: 2, duration: 3, row: 1 },
  { start: 40, duration: 10, side: 1 },
  { start: 60, duration: 10, lane: 1 },
]);
const INDEX = indexSpans(SPANS);

test("a span is found at a time in its own lane, side and row only", () => {
  const at = (time, lane = 0, side = 0, row = 0) => spanAt(SPANS, INDEX, lane, side, row, time, 0);
  assert.deepEqual([0, 10, 15, 20, 31].map((time) => at(time)), [0, 0, -1, 1, -1]);
  assert.equal(at(3, 0, 0, 1), 2);
  assert.equal(at(45), -1);
  assert.equal(at(45, 0, 1), 3);
  assert.equal(at(65, 1), 4);
  assert.equal(at(65, 7), -1, "a lane without spans");
});

test("a short span is found within the slack on either side of it", () => {
  const at = (time) => spanAt(SPANS, INDEX, 0, 0, 0, time, 2);
  assert.deepEqual([12, 13, 17, 18].map(at), [0, -1, -1, 1]);
});

test("the last rows of a lane's side are not those of the next", () => {
  const spans = columns([{ row: 63 }, { side: 1, row: 0 }, { side: 1, row: 63 }, { lane: 1 }]);
  assert.deepEqual([...indexSpans(spans).rows.values()], [[0], [1], [2], [3]]);
});

test("a gap is between two spans of the first row", () => {
  const at = (time) => gapAt(SPANS, INDEX, 0, 0, time);
  assert.deepEqual(at(15), { side: 0, before: 0, after: 1, from: 10, to: 20 });
  assert.equal(at(-1), null, "before the first");
  assert.equal(at(35), null, "after the last");
  const touching = columns([{ start: 0 }, { start: 10 }]);
  assert.equal(gapAt(touching, indexSpans(touching), 0, 0, 5), null);
});

test("a partner is the span of the other side with its number, if that is drawn", () => {
  const spans = columns([{ id: 7, partner: 9 }, { id: 9, side: 1, partner: 7 }, { id: 9 }, { id: 8, partner: 5 }]);
  const index = indexSpans(spans);
  assert.deepEqual([0, 1, 2, 3].map((i) => partnerOf(spans, index, i)), [1, 0, -1, -1]);
});

const PAIRS = [
  { start: 100, partner: 0, lane: 1, change: 1 },
  { start: 300, partner: 1, change: 0.5 },
  { start: 200, partner: 2, change: -0.5 },
  { start: 50, partner: 3, change: 0.01 },
  { start: 10, change: 2 },
  { start: 20, partner: 5, change: 2, duration: 0 },
];
const TWO_LANES = [[1, 1], [1, 1]];

function next(direction, { spans = PAIRS, window = [0, 1000], ...others } = {}) {
  const { data, lanes, view } = timeline(module, spans, { rows: TWO_LANES, ...others });
  [view.from, view.to] = window;
  return nextPair(data, lanes, view, direction);
}

test("the first pair is the first that differs in the topmost lane in sight, the last one the last", () => {
  assert.equal(next(1), 2);
  assert.equal(next(-1), 1);
  assert.equal(next(1, { window: [0, 150] }), 0, "only that of the lower lane differs");
  assert.equal(next(1, { window: [0, 90] }), 3, "none differs");
  assert.equal(next(1, { window: [400, 900] }), -1);
});

test("pairs outside the compared step, and one that fills it, are passed over", () => {
  const steps = [[[4, 0, 150], [5, 150, 400]], [[4, 0, 1000]]];
  assert.equal(next(1, { steps, compared: [4, 4] }), 0);
  assert.equal(next(1, { spans: [{ duration: 150, partner: 0 }], steps, compared: [4, 4] }), -1);
});

test("from a selected span it goes on to the nearest pair of its lane and side", () => {
  const selected = [{ lane: 0, side: 0, start: 200 }];
  assert.equal(next(1, { selected }), 1);
  assert.equal(next(-1, { selected }), 3);
  assert.equal(next(1, { selected: [{ lane: 0, side: 1, start: 0 }] }), -1);
});
