// The timeline: lanes of one or two runs on one axis, to pan, zoom, select and measure.
//
// mount(element, data, state, onChange) draws into `element` and returns { update(data, state), destroy() }.
//
// `data` is what `tools.timeline.drawing.drawing` returns, with plain or typed arrays for the columns of `spans` and
// `drift`, and with `letters` (names of the sides), `marks` (a letter or digit beside the lanes of each), `colours` (of
// each side), `home` (the window to begin with), `chosen` (`side` and `id` of the selected span, or null), `selected` (places
// of it and its partner as returned by `selected.drawn_selection`), `said`
// (the selection in words), `details` and `ranged` (of the selected span and of the range, as `dock.js` shows them; absent
// without a panel), `find` (the text that marks spans), `matches` (the spans of the compared step that have it, as columns
// `start`, `duration`, `side`, `id`) and `token`, which changes with time 0 and the compared steps, and `jumps` (buttons: `text`, `title`, `side` and `id` of a
// span, −1 for none, and the `window` to show). `state` has `view` ([from, to] in µs, or null for home), `range` (the same,
// or null), `colour` ("change" or "type"), `shift` (µs), `all` (show idle lanes), `opened` and `folded` (lanes), and
// `compact` for a small one. `onChange(name, value)` tells of what the user did: `view` ({ window, width, shift,
// opened, folded, token }, window null for home), `selected` ({ side, id } or null), `range`, `colour`, `all`.
// How long drawing took is in `dataset.drawMs` of the drawing's own element.

const RULER = 22;
const DRIFT = 58;
const MAP = 30;
const SETTLED_MS = 80;
const DOCKED = 900; // pixels; the panel of a narrower drawing is below the lanes
const LEAST_FOUND = 6; // pixels; a span that was found is drawn at least as wide

export function mount(element, data, state, onChange) {
  const root = make("div", element, `timeline${state.compact ? " compact" : ""}`);
  root.tabIndex = 0;
  root.setAttribute("role", "application");
  root.setAttribute("aria-label", "Timeline. Press ? for keys.");
  const bar = make("div", root, "bar");
  const jumps = make("div", root, "jumps");
  const main = make("div", root, "main");
  const map = make("canvas", main, "map");
  const head = make("canvas", main, "head");
  const scroll = make("div", main, "lanes");
  const dock = make("div", root, "dock");
  const canvas = make("canvas", scroll);
  const spacer = make("div", scroll);
  const tip = make("div", root, "tip");
  const help = make("div", root, "help");
  const said = make("div", root, "said");
  said.setAttribute("role", "status");
  tip.hidden = help.hidden = true;
  map.hidden = Boolean(state.compact);

  const view = { from: 0, to: 1, range: null, shift: 0, all: false, colour: "change", opened: new Set(), folded: new Set() };
  let [spansIndex, lanes, colours, hover, pending, settled, isHidden, quick] = [null, null, null, -1, 0, 0, false, ""];
  let awaited = ""; // what was selected here and is not answered yet
  const showControls = controls(bar, jumps, help, {
    zoom, fit, jump,
    toggleIdle: () => change("all", !view.all),
    toggleColour: () => change("colour", view.colour === "type" ? "change" : "type"),
    unshift: () => shiftBy(0),
    nextFound,
    toggleHelp: () => (help.hidden = !help.hidden),
  });

  function adopt(next) {
    [view.from, view.to] = next.view ?? data.home;
    view.range = next.range ?? null;
    view.shift = next.shift ?? 0;
    view.colour = next.colour ?? "change";
    view.all = Boolean(next.all);
    view.opened = new Set(next.opened ?? []);
    view.folded = new Set(next.folded ?? []);
  }

  function scale() {
    const left = root.clientWidth < 560 ? 92 : 172;
    const width = Math.max(main.clientWidth - left, 50);
    const usPerPixel = (view.to - view.from) / width;
    return { left, width, usPerPixel, x: (time) => left + (time - view.from) / usPerPixel, time: (x) => view.from + (x - left) * usPerPixel };
  }

  function redraw() {
    if (!pending) pending = requestAnimationFrame(draw);
  }

  function draw() {
    pending = 0;
    if (!root.isConnected) destroy(); // the page was left
    if (!root.isConnected || !root.clientWidth) return;
    const began = performance.now();
    root.classList.toggle("docked", Boolean(data.details) && !state.compact && root.clientWidth >= DOCKED);
    showDock(dock, data, quick, Boolean(state.compact));
    colours = theme(root);
    const now = scale();
    const hasDrift = data.is_compared;
    if (!map.hidden) drawMap(map, { data, view, scale: now, colours, height: MAP });
    drawHead(head, { data, view, scale: now, colours, ruler: RULER, drift: hasDrift ? DRIFT : 0 });
    lanes = placeLanes(data, view);
    const height = scroll.clientHeight;
    spacer.style.height = `${Math.max(lanes.height - height, 0)}px`;
    const context = prepare(canvas, now.left + now.width, height);
    drawLanes(context, {
      data, index: spansIndex, lanes, view, scale: now, colours, top: scroll.scrollTop, height, hover,
      look: { colour: data.is_compared ? view.colour : "type", find: data.find },
    });
    showControls(data, view, colours);
    if (isHidden) scrollToSelected();
    const tookMs = performance.now() - began;
    root.dataset.drawMs = tookMs.toFixed(1);
    root.dataset.drawn = String(Number(root.dataset.drawn ?? 0) + 1);
    root.dataset.window = `${view.from},${view.to}`;
    root.dataset.spans = String(data.spans.start.length);
    root.dataset.sharp = data.window.join(",");
  }

  function change(name, value) {
    view[name] = value;
    onChange(name, value);
    redraw();
  }

  function isHome() {
    return view.from === data.home[0] && view.to === data.home[1];
  }

  // Tells of the window once it has not changed for a while.
  function settle(waitMs = SETTLED_MS) {
    redraw();
    clearTimeout(settled);
    settled = setTimeout(() => {
      onChange("view", {
        window: isHome() ? null : [view.from, view.to], width: Math.round(scale().width), shift: view.shift, opened: [...view.opened], folded: [...view.folded],
        token: data.token,
      });
    }, waitMs);
  }

  function look(from, to) {
    const [first, last] = extent(data);
    const length = Math.min(Math.max(to - from, 1e-4), (last - first) * 1.2 + 1);
    const middle = Math.min(Math.max((from + to) / 2, first), last);
    [view.from, view.to] = [middle - length / 2, middle + length / 2];
    tip.hidden = true;
    settle();
  }

  function zoom(factor, centre = (view.from + view.to) / 2) {
    look(centre - (centre - view.from) * factor, centre + (view.to - centre) * factor);
  }

  function pan(share) {
    const by = (view.to - view.from) * share;
    look(view.from + by, view.to + by);
  }

  function fit() {
    [view.from, view.to] = data.home;
    settle();
  }

  function fitChosen() {
    if (view.range) return look(...view.range);
    const places = data.selected ?? [];
    if (!places.length) return fit();
    const from = Math.min(...places.map((one) => one.start));
    const to = Math.max(...places.map((one) => one.start + one.duration));
    const margin = Math.max((to - from) * 0.5, 0.01);
    return look(from - margin, to + margin);
  }

  function clear() {
    help.hidden = true;
    if (view.range) change("range", null);
    if (data.chosen) choose(null);
  }

  // Where a point of the lanes is: lane, side, row and time; `onLabel` on the names at the left.
  function at(event) {
    const box = canvas.getBoundingClientRect();
    const [x, y] = [event.clientX - box.left, event.clientY - box.top + scroll.scrollTop];
    const now = scale();
    const place = lanes?.places.find((one) => y >= one.top - 2 && y <= one.top + one.height + 2);
    const found = { x, time: now.time(x), usPerPixel: now.usPerPixel, onLabel: x < now.left, place };
    if (!place) return found;
    for (let side = place.tops.length - 1; side >= 0; side--) {
      if (y >= place.tops[side]) return { ...found, side, row: Math.floor((y - place.tops[side]) / ROW) };
    }
    return found;
  }

  function spanUnder(point) {
    if (!point.place || point.onLabel || point.side === undefined || point.row >= point.place.rows[point.side]) return -1;
    return spanAt(data.spans, spansIndex, point.place.position, point.side, point.row, point.time, 2 * point.usPerPixel);
  }

  function gapUnder(point) {
    if (!point.place || point.onLabel || point.side === undefined || point.row > 0) return null;
    return gapAt(data.spans, spansIndex, point.place.position, point.side, point.time);
  }

  function select(i) {
    const { spans } = data;
    if (i < 0) return choose(null);
    if (spans.count[i] > 1) return look(spans.start[i] - spans.duration[i] * 0.2, spans.start[i] + spans.duration[i] * 1.2);
    return choose({ side: spans.side[i], id: spans.id[i] });
  }

  // Marks a span, or none, at once; its partner, launch and details follow.
  function choose(chosen) {
    const { spans } = data;
    const i = chosen ? (spansIndex.byId.get(chosen.id * 2 + chosen.side) ?? -1) : -1;
    const selected = i < 0 ? [] : [{ ...chosen, lane: spans.lane[i], row: spans.row[i], start: spans.start[i], duration: spans.duration[i], launch: null }];
    quick = i < 0 ? "" : describe(data, i);
    data = { ...data, chosen, selected };
    awaited = chosenName(chosen);
    onChange("selected", chosen);
    redraw();
  }

  function chosenName(chosen) {
    return chosen ? `${chosen.side}:${chosen.id}` : "none";
  }

  // Selects and shows the next or previous span that was found.
  function nextFound(direction) {
    const { matches } = data;
    const i = nextMatch(matches, data.chosen, view.from, direction);
    if (i < 0) return;
    const [start, duration] = [matches.start[i], matches.duration[i]];
    choose({ side: matches.side[i], id: matches.id[i] });
    const length = Math.min(view.to - view.from, (duration * scale().width) / LEAST_FOUND || Infinity);
    if (length < view.to - view.from || start < view.from || start + duration > view.to) {
      const middle = start + duration / 2;
      look(middle - length / 2, middle + length / 2);
    }
  }

  // Selects the next or the previous pair.
  function walk(direction) {
    const { spans } = data;
    const found = nextPair(data, lanes, view, direction);
    if (found < 0) return;
    select(found);
    const [start, end] = [spans.start[found], spans.start[found] + spans.duration[found]];
    if (start < view.from || end > view.to) pan((start - (view.from + view.to) / 2) / (view.to - view.from));
  }

  // Shows a window, and selects a span in it, if any.
  function jump({ side, id, window: [from, to] }) {
    if (id >= 0) choose({ side, id });
    look(from, to);
  }

  function toggleLane(position) {
    const isCut = Math.max(...data.lanes[position].rows) > data.rows;
    if (view.folded.has(position)) view.folded.delete(position);
    else if (view.opened.has(position) || !isCut) {
      view.opened.delete(position);
      view.folded.add(position);
    } else view.opened.add(position);
    settle(0);
  }

  const showTip = (event, text) => showBeside(event, root, tip, text);

  function hoverSpan(event, point) {
    hover = point ? spanUnder(point) : -1;
    const gap = hover < 0 && point ? gapUnder(point) : null;
    showTip(event, hover >= 0 ? describe(data, hover) : gap ? describeGap(data, spansIndex, gap) : "");
    redraw();
  }

  // Shows the first lane with a span that was found, if none of them is in sight.
  function scrollToFound() {
    const { spans } = data;
    const tops = [];
    for (let i = 0; i < spans.start.length; i++) {
      const place = spans.marked[i] && lanes.of.get(spans.lane[i]);
      if (place && spans.start[i] < view.to && spans.start[i] + spans.duration[i] > view.from) tops.push(place.tops[spans.side[i]]);
    }
    const isInSight = (top) => top >= scroll.scrollTop && top < scroll.scrollTop + scroll.clientHeight - ROW;
    if (tops.length && !tops.some(isInSight)) scroll.scrollTop = Math.min(...tops) - LANE_GAP;
  }

  // Shows the lane and the row of the selected span and its partner.
  function scrollToSelected() {
    isHidden = false;
    if (!data.selected.length) return undefined;
    const places = data.selected.map((one) => ({ ...one, place: lanes.of.get(one.lane) }));
    const cut = places.filter(({ place, row, side }) => row >= place.rows[side]);
    if (cut.length) {
      for (const { lane } of cut) {
        view.folded.delete(lane);
        view.opened.add(lane);
      }
      isHidden = true; // until these rows are shown
      return settle(0);
    }
    const tops = places.map(({ place, row, side }) => place.tops[side] + row * ROW);
    const isInSight = Math.min(...tops) >= scroll.scrollTop && Math.max(...tops) + ROW <= scroll.scrollTop + scroll.clientHeight;
    if (!isInSight) scroll.scrollTop = Math.min(...tops) - 2 * LANE_GAP;
  }

  // Moves what is drawn of the candidate at once; sharp data follows.
  function shiftBy(shift) {
    const by = shift - view.shift;
    view.shift = shift;
    const { spans } = data;
    for (let i = 0; i < spans.start.length; i++) if (spans.side[i]) spans.start[i] += by;
    for (const step of data.steps[1]) step[1] += by;
    for (const one of data.selected ?? []) if (one.side) one.start += by;
    settle();
  }

  listenToPointers(canvas, head, {
    at, look, shiftBy,
    view: () => view,
    canShift: () => data.letters.length > 1,
    drawRange(range) {
      view.range = range;
      redraw();
    },
    setRange: (range) => change("range", range),
    click(point) {
      if (point.onLabel) {
        if (point.place) toggleLane(point.place.position);
        return;
      }
      const [i, gap] = [spanUnder(point), gapUnder(point)];
      if (i < 0 && gap) change("range", [gap.from, gap.to]);
      else select(i);
    },
    hover: hoverSpan,
    hoverHead: (event) => showTip(event, data.is_compared ? describeDrift(data, at(event)) : ""),
    scrollTop(top) {
      if (top !== undefined) scroll.scrollTop = top;
      return scroll.scrollTop;
    },
    focus: () => root.focus({ preventScroll: true }),
  });
  canvas.addEventListener("dblclick", (event) => {
    const i = spanUnder(at(event));
    if (i >= 0) look(data.spans.start[i] - data.spans.duration[i] * 0.3, data.spans.start[i] + data.spans.duration[i] * 1.3);
  });

  function overMap(event) {
    if (!event.buttons) return;
    const now = scale();
    const share = (event.clientX - map.getBoundingClientRect().left - now.left) / now.width;
    const [first, last] = extent(data);
    const middle = first + share * (last - first);
    const half = (view.to - view.from) / 2;
    look(middle - half, middle + half);
  }
  map.addEventListener("pointerdown", (event) => {
    map.setPointerCapture(event.pointerId);
    overMap(event);
  });
  map.addEventListener("pointermove", (event) => {
    showTip(event, event.buttons ? "" : describeSteps(data, scale(), event.clientX - map.getBoundingClientRect().left));
    overMap(event);
  });
  map.addEventListener("pointerleave", () => (tip.hidden = true));

  scroll.addEventListener("scroll", () => {
    hover = -1;
    tip.hidden = true;
    redraw();
  });

  listenToKeys(root, {
    zoom, pan, walk, nextFound, fit, clear, fitChosen,
    timeAt: (event) => scale().time(event.clientX - root.getBoundingClientRect().left),
    share: (pixels) => pixels / scale().width,
    scrollBy: (pixels) => scroll.scrollBy(0, pixels),
    toggleHelp: () => (help.hidden = !help.hidden),
  });

  const unwatch = watchLook(root, redraw);

  function update(next, nextState) {
    const isFirst = !spansIndex;
    const isNew = isFirst || next.token !== data.token;
    const isFound = next.find !== "" && (isNew || next.find !== data.find);
    const isAnswer = isNew || !awaited || awaited === chosenName(next.chosen);
    if (isAnswer) {
      if (next.selected?.length && (isFirst || awaited || chosenName(next.chosen) !== chosenName(data.chosen))) isHidden = true;
      [awaited, quick] = ["", ""];
    }
    const wasHome = !isFirst && isHome();
    data = isAnswer ? next : { ...next, chosen: data.chosen, selected: data.selected };
    spansIndex = indexSpans(data.spans);
    hover = -1;
    tip.hidden = true;
    said.textContent = data.said ?? "";
    if (isNew) {
      clearTimeout(settled); // what was not told yet is of another step
      adopt(nextState);
    } else if (wasHome) [view.from, view.to] = data.home;
    draw();
    if (isFound) scrollToFound();
    if (isFound && !isFirst) root.focus({ preventScroll: true }); // so that Enter leads to the next one
    if (isNew && (!isHome() || Math.abs(scale().width - nextState.width) > 40)) settle(0);
  }

  function destroy() {
    clearTimeout(settled);
    cancelAnimationFrame(pending);
    unwatch();
    root.remove();
  }

  update(data, state);
  return { update, destroy };
}
