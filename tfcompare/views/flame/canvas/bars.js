// Which bars of a flame graph are drawn, and where. Lengths are in pixels.

const BAR = 20; // height of a row
const THINNEST = 1; // narrower siblings are drawn as one bar

// For each node the first of its children and how many they are; those of −1 are the roots. Siblings follow each other.
function indexNodes({ parent }) {
  const index = { first: new Map(), count: new Map() };
  for (let i = 0; i < parent.length; i++) {
    if (!index.count.has(parent[i])) index.first.set(parent[i], i);
    index.count.set(parent[i], (index.count.get(parent[i]) ?? 0) + 1);
  }
  return index;
}

const childrenOf = (index, i) => {
  const first = index.first.get(i) ?? 0;
  return [first, first + (index.count.get(i) ?? 0)];
};

// The node and all above it, from the root on; nothing of −1.
function pathTo(nodes, i) {
  return i < 0 ? [] : [...pathTo(nodes, nodes.parent[i]), i];
}

// The bars from the row of roots on, with the node `focus` and all above it as wide as all; −1 shows all. Each bar
// is of the nodes `from` up to `to`, more than one of siblings too narrow to see.
function placeBars(nodes, index, focus, width) {
  const above = pathTo(nodes, focus);
  const bars = above.map((i) => ({ from: i, to: i + 1, x: 0, w: width, row: nodes.depth[i] }));
  const [, roots] = childrenOf(index, -1);
  const origin = focus < 0 ? 0 : nodes.left[focus];
  const whole = focus < 0 ? nodes.left[roots - 1] + nodes.width[roots - 1] : nodes.width[focus];
  const x = (value) => ((value - origin) / whole) * width;
  const open = [focus];
  for (let next = 0; next < open.length; next++) {
    const [first, end] = childrenOf(index, open[next]);
    for (let i = first; i < end; i++) {
      const w = (nodes.width[i] / whole) * width;
      const isThin = w < THINNEST; // and so are all that follow: the widest come first
      const to = isThin ? end : i + 1;
      const right = x(nodes.left[to - 1] + nodes.width[to - 1]);
      if (right - x(nodes.left[i]) >= THINNEST / 2) bars.push({ from: i, to, x: x(nodes.left[i]), w: right - x(nodes.left[i]), row: nodes.depth[i] });
      if (isThin) break;
      open.push(i);
    }
  }
  return bars;
}

// The bar at a place; undefined without one.
function barAt(bars, x, y) {
  const row = Math.floor(y / BAR);
  return bars.find((bar) => bar.row === row && x >= bar.x && x < bar.x + Math.max(bar.w, THINNEST));
}

// The node that a key leads to from another one, or −1 for none: its parent, its widest child, or a sibling.
function neighbour(nodes, index, i, key) {
  if (i < 0) return 0;
  if (key === "ArrowUp") return nodes.parent[i];
  const [first, end] = childrenOf(index, key === "ArrowDown" ? i : nodes.parent[i]);
  const next = key === "ArrowDown" ? first : key === "ArrowLeft" ? i - 1 : i + 1;
  return next >= first && next < end ? next : -1;
}
