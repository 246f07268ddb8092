// A flame graph: a tree as bars below bars, to zoom into.
//
// mountFlame(element, data, onChoose) draws into `element` and returns { update(data), destroy() }.
//
// `data` is what `component.drawing` returns, with plain or typed arrays for the columns of `nodes`, and with `selected`,
// the node that is zoomed into, −1 for none. `onChoose(node)` tells of the node that the user zoomed into. Where `chooses`
// is false, nothing outside follows, and what is zoomed into stays when the data is updated.

const ROWS_IN_SIGHT = 14; // that are seen at a time; the others are scrolled to
const ROWS_ABOVE = 3; // that stay in sight above the zoomed node

export function mountFlame(element, data, onChoose) {
  const root = make("div", element, "flame");
  root.tabIndex = 0;
  root.setAttribute("role", "application");
  const bar = make("div", root, "bar");
  const title = make("strong", bar);
  const about = make("span", bar, "about");
  const legend = make("div", bar, "legend");
  const path = make("div", root, "path");
  const where = make("span", path);
  const out = make("button", path, "", "×");
  out.type = "button";
  out.title = "Show all (Esc)";
  out.setAttribute("aria-label", out.title);
  const scroll = make("div", root, "rows");
  const canvas = make("canvas", scroll);
  const spacer = make("div", scroll);
  const tip = make("div", root, "tip");
  const said = make("div", root, "said");
  said.setAttribute("role", "status");
  tip.hidden = true;

  let [index, bars, colours, focus, marked, pending, told] = [null, [], null, -1, -1, 0, null];

  function redraw() {
    if (!pending) pending = requestAnimationFrame(draw);
  }

  function draw() {
    pending = 0;
    if (!root.isConnected) destroy(); // the page was left
    if (!root.isConnected || !scroll.clientWidth) return;
    const began = performance.now();
    const style = theme(root);
    colours = { ...style, hatches: [1, -1].map((leaning) => hatch(style.isDark ? "#ffffff90" : "#ffffffb0", leaning)) };
    const rows = rowsOf(data);
    const height = Math.min(rows, ROWS_IN_SIGHT) * BAR;
    scroll.style.height = `${height}px`;
    spacer.style.height = `${(rows * BAR) - height}px`;
    bars = placeBars(data.nodes, index, focus, scroll.clientWidth);
    const context = prepare(canvas, scroll.clientWidth, height);
    paintBars(context, { data, bars, colours, top: scroll.scrollTop, height, marked, focus });
    legend.replaceChildren(...flameLegend(data, colours));
    root.dataset.drawMs = (performance.now() - began).toFixed(1);
    root.dataset.focus = String(focus);
    root.dataset.bars = String(bars.length);
  }

  function zoomTo(node) {
    focus = marked = node;
    tip.hidden = true;
    out.hidden = node < 0;
    const one = { from: node, to: node + 1 };
    where.textContent = node < 0 ? hint() : `${pathOf(data, node)}: ${linesOf(data, one).join(", ")}`;
    scroll.scrollTop = node < 0 ? 0 : (data.nodes.depth[node] - ROWS_ABOVE) * BAR;
    redraw();
  }

  function hint() {
    const below = rowsOf(data) - ROWS_IN_SIGHT;
    return `Click a bar to zoom into it.${below > 0 ? ` ${below} more rows are below: scroll.` : ""}`;
  }

  function choose(node) {
    if (node === focus) return;
    zoomTo(node);
    if (!data.chooses) return;
    told = node;
    onChoose(node);
  }

  function under(event) {
    const box = canvas.getBoundingClientRect();
    return barAt(bars, event.clientX - box.left, event.clientY - box.top + scroll.scrollTop);
  }

  canvas.addEventListener("click", (event) => {
    const found = under(event);
    if (!found) return;
    // Of several that are too narrow to see, the node around them is zoomed into.
    choose(found.to === found.from + 1 ? found.from : data.nodes.parent[found.from]);
  });
  canvas.addEventListener("pointermove", (event) => {
    const found = event.pointerType === "touch" ? undefined : under(event);
    canvas.style.cursor = found ? "pointer" : "default";
    showBeside(event, root, tip, found ? describeBar(data, found) : "");
    marked = found ? found.from : -1;
    redraw();
  });
  canvas.addEventListener("pointerleave", () => {
    tip.hidden = true;
    marked = -1;
    redraw();
  });
  scroll.addEventListener("scroll", () => {
    tip.hidden = true;
    redraw();
  });
  out.addEventListener("click", () => choose(-1));
  root.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey || event.target === out) return;
    if (event.key === "Escape") choose(-1);
    else if (event.key === "Enter") choose(marked);
    else if (/^Arrow(Up|Down|Left|Right)$/.test(event.key)) mark(neighbour(data.nodes, index, marked, event.key));
    else return;
    event.preventDefault();
    event.stopPropagation();
  });

  function mark(node) {
    if (node < 0) return;
    marked = node;
    said.textContent = describeBar(data, { from: node, to: node + 1 });
    const y = data.nodes.depth[node] * BAR;
    if (y < scroll.scrollTop || y + BAR > scroll.scrollTop + scroll.clientHeight) scroll.scrollTop = y - ROWS_ABOVE * BAR;
    redraw();
  }

  const unwatch = watchLook(root, redraw);

  function update(next) {
    const isNew = !index || next.token !== data.token;
    data = next;
    index = indexNodes(data.nodes);
    title.textContent = data.title;
    about.textContent = data.about;
    root.setAttribute("aria-label", `${data.title}. Arrow keys move, Enter zooms in, Esc shows all.`);
    if (isNew) told = null;
    // What the page says is of before the click that it does not know yet.
    const isStale = told !== null && data.selected !== told;
    if (data.selected === told) told = null;
    if (isNew || (data.chooses && !isStale && data.selected !== focus)) zoomTo(data.selected ?? -1);
    draw();
  }

  function destroy() {
    cancelAnimationFrame(pending);
    unwatch();
    root.remove();
  }

  update(data);
  return { update, destroy };
}

const rowsOf = ({ nodes }) => nodes.depth.at(-1) + 1; // nodes are in order of depth

// What colours mean, as far as they are used.
function flameLegend(data, colours) {
  if (data.isPlain) return [];
  const { shades } = colours;
  const strip = `linear-gradient(90deg, ${shades[0][SHADES]}, ${shades[0][0]}, ${shades[1][SHADES]})`;
  const entries = [[strip, "half → twice the time", "Blue: less time. Orange: more time. From half and twice the time on, colours are full."]];
  const grey = data.isJudged ? "no significant change" : "change below 5 %";
  entries.push([shades[0][0], grey]);
  if (data.nodes.status.includes(2)) entries.push(["", `only in ${data.sides[0]}`, "", "removed"]);
  if (data.nodes.status.includes(1)) entries.push(["", `only in ${data.sides[1]}`, "", "added"]);
  return legendOf(entries);
}
