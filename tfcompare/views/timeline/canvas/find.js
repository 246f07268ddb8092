// Which span, gap or pair is at a place, and which span that was found is the next.

// Spans by lane, side and row, in the order of their start, to find the one at a point.
function indexSpans(spans) {
  const rows = new Map();
  const byId = new Map();
  for (let i = 0; i < spans.start.length; i++) {
    const key = (spans.lane[i] * 2 + spans.side[i]) * MOST_ROWS + spans.row[i];
    if (!rows.has(key)) rows.set(key, []);
    rows.get(key).push(i);
    if (spans.id[i] >= 0) byId.set(spans.id[i] * 2 + spans.side[i], i);
  }
  return { rows, byId };
}

function spansOfRow(index, lane, side, row) {
  return index.rows.get((lane * 2 + side) * MOST_ROWS + row) ?? [];
}

// How many of these spans start until a time.
function countUntil(spans, found, time) {
  let low = 0;
  let high = found.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (spans.start[found[middle]] <= time) low = middle + 1;
    else high = middle;
  }
  return low;
}

// The span of a row at a time, or within `slack` of it; −1 for none.
function spanAt(spans, index, lane, side, row, time, slack) {
  const found = spansOfRow(index, lane, side, row);
  const count = countUntil(spans, found, time + slack);
  const i = count > 0 ? found[count - 1] : -1;
  return i >= 0 && spans.start[i] + spans.duration[i] >= time - slack ? i : -1;
}

// The gap of a lane at a time: `before` and `after` are the spans around it, `from` and `to` its ends; null for none.
function gapAt(spans, index, lane, side, time) {
  const found = spansOfRow(index, lane, side, 0);
  const count = countUntil(spans, found, time);
  if (count < 1 || count >= found.length) return null;
  const [before, after] = [found[count - 1], found[count]];
  const gap = { side, before, after, from: spans.start[before] + spans.duration[before], to: spans.start[after] };
  return gap.from < gap.to ? gap : null;
}

// The span that is the partner of another one, if it is drawn; −1 for none.
function partnerOf(spans, index, i) {
  return spans.partner[i] < 0 ? -1 : (index.byId.get(spans.partner[i] * 2 + 1 - spans.side[i]) ?? -1);
}

// The next or previous pair of the lane of the selected span. Without one, of the pairs in sight that are within the
// compared step and do not fill it: the first or last one that differs, of the topmost lane that has any; if none
// differs, the first or last pair. Spans without length are skipped; −1 for none.
function nextPair(data, lanes, view, direction) {
  const { spans } = data;
  const here = data.selected?.[0];
  const bounds = data.steps.map((steps, side) => {
    const step = steps.find(([number]) => number === data.compared[side]);
    return step ? [step[1], step[1] + step[2]] : data.home;
  });
  const isInSight = (i) => {
    const [start, end, side] = [spans.start[i], spans.start[i] + spans.duration[i], spans.side[i]];
    const isShown = spans.row[i] < (lanes.of.get(spans.lane[i])?.rows[side] ?? 0);
    const [from, to] = bounds[side];
    return isShown && start >= Math.max(view.from, from) && end <= Math.min(view.to, to) && end - start < to - from;
  };
  const isNext = (i) => spans.lane[i] === here.lane && spans.side[i] === here.side && (spans.start[i] - here.start) * direction > 0;
  const among = [];
  for (let i = 0; i < spans.start.length; i++) {
    if (spans.partner[i] >= 0 && spans.duration[i] > 0 && (here ? isNext(i) : isInSight(i))) among.push(i);
  }
  const differing = here ? [] : among.filter((i) => Math.abs(spans.change[i]) >= UNCHANGED);
  const top = (i) => lanes.of.get(spans.lane[i])?.top;
  const isSooner = (i, best) => (top(i) - top(best) || (spans.start[i] - spans.start[best]) * direction) < 0;
  return (differing.length ? differing : among).reduce((best, i) => (best < 0 || isSooner(i, best) ? i : best), -1);
}

// The position of the selected span among the spans that were found (`matches`, by their start); −1 for none.
function matchOf(matches, selected) {
  return matches.id.findIndex((id, i) => selected.some((one) => one.id === id && one.side === matches.side[i]));
}

// The position of the next or previous span that was found, after the last one comes the first; without a selected one,
// the first that begins after a time, or the last before it. −1 if nothing was found.
function nextMatch(matches, selected, after, direction) {
  const count = matches.id.length;
  const here = matchOf(matches, selected);
  if (!count || here >= 0) return count ? (here + direction + count) % count : -1;
  const later = matches.start.findIndex((start) => start >= after);
  const first = later < 0 ? count : later;
  return direction > 0 ? first % count : (first - 1 + count) % count;
}

function matchText(matches, selected) {
  const here = matchOf(matches, selected);
  const count = matches.id.length.toLocaleString("en");
  return here < 0 ? `${count} found` : `${(here + 1).toLocaleString("en")} of ${count}`;
}
