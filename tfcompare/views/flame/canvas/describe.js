// What a bar says.

const formatChange = (us) => `${us < 0 ? "−" : "+"}${formatDuration(Math.abs(us))}`;

function formatRatio(ratio) {
  if (!Number.isFinite(ratio)) return "∞";
  return `${ratio.toFixed(Math.max(0, Math.min(2 - Math.floor(Math.log10(Math.max(ratio, 1e-9))), 4)))}×`;
}

const isKnown = (value) => value !== null && !Number.isNaN(value);
const timeText = (value) => (isKnown(value) ? formatDuration(value) : "–");

const sumOf = (column, { from, to }) => column.slice(from, to).reduce((sum, value) => sum + (value ?? NaN), 0);

// The time of a bar on both sides, and its change as a text; empty without two sides.
function timesOf({ nodes, sides }, bar) {
  const [baseline, candidate] = [sumOf(nodes.baseline, bar), sumOf(nodes.candidate, bar)];
  const change = sides.length > 1 && isKnown(baseline) && isKnown(candidate) ? candidate - baseline : NaN;
  return { baseline, candidate, change };
}

function nameOf({ nodes, labels }, { from, to }) {
  return to > from + 1 ? `${(to - from).toLocaleString("en-US")} smaller` : labels[nodes.label[from]];
}

// What stands beside the name: the time of a run alone, the change between two; nothing for unrelated programs.
function valueOf(data, bar) {
  const { baseline, change } = timesOf(data, bar);
  if (data.sides.length === 1) return timeText(baseline);
  if (data.isPlain || !isKnown(change)) return "";
  const status = bar.to > bar.from + 1 ? 0 : data.nodes.status[bar.from];
  const word = ["", "added ", "removed "][status];
  return change === 0 ? "±0" : word + formatChange(change);
}

const pathOf = ({ nodes, labels }, i) => pathTo(nodes, i).map((one) => labels[nodes.label[one]]).join(" › ");

// The times of a bar, in lines: of each run, the change, and the verdict.
function linesOf(data, bar) {
  const { nodes, sides, verdicts } = data;
  const { baseline, candidate, change } = timesOf(data, bar);
  if (sides.length === 1) return [timeText(baseline)];
  const lines = [`${sides[0]}: ${timeText(baseline)}`, `${sides[1]}: ${timeText(candidate)}`];
  if (!isKnown(change)) return lines;
  const isOne = bar.to === bar.from + 1;
  const only = isOne ? [null, 1, 0][nodes.status[bar.from]] : null;
  if (only !== null) return [...lines, `only in ${sides[only]}`];
  lines.push(`change ${change === 0 ? "±0" : formatChange(change)}${baseline > 0 ? `, ${formatRatio(candidate / baseline)}` : ""}`);
  if (isOne && nodes.verdict[bar.from] >= 0) lines.push(verdicts[nodes.verdict[bar.from]]);
  return lines;
}

// What the pointer is on, in lines of text.
function describeBar(data, bar) {
  const isOne = bar.to === bar.from + 1;
  const within = isOne ? "" : pathOf(data, data.nodes.parent[bar.from]);
  const name = isOne ? shortenName(pathOf(data, bar.from)) : `${nameOf(data, bar)}${within ? `, in ${shortenName(within)}` : ""}`;
  return [name, ...linesOf(data, bar)].join("\n");
}
