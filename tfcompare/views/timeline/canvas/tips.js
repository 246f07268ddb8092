// The text beside the pointer.

// What the pointer is on, in lines of text.
function describe(data, i) {
  const { spans } = data;
  const names = (spans.op[i] < 0 ? [spans.name[i]] : [spans.op[i], spans.name[i]]).map((one) => shortenName(data.names[one]));
  const isOne = spans.count[i] === 1;
  const scale = data.scales[spans.side[i]]; // times are those of the profile, also where a side is stretched
  if (!isOne) names[0] = `${spans.count[i].toLocaleString("en")} spans, the longest: ${names[0]}`;
  const lines = isOne
    ? [...names, `${formatDuration(spans.duration[i] / scale)}, starts at ${formatTime(spans.start[i] / scale)}`]
    : [...names, `${formatDuration((spans.duration[i] * spans.busy[i]) / scale)} in all`];
  if (data.letters.length > 1) lines.push(describeChange(data, i, isOne));
  return lines.join("\n");
}

// The step of each side at a place on the map.
function describeSteps(data, scale, at) {
  const x = mapScale(data, scale);
  const lines = data.steps.map((steps, side) => {
    const step = steps.find(([, start, duration]) => x(start) <= at && at <= x(start + duration));
    if (!step) return "";
    const [number, , duration, position] = step;
    const own = number === position ? "" : ` (number ${number})`;
    const isCompared = number === data.compared[side] ? ", the compared one" : "";
    return `${data.letters.length > 1 ? `${data.letters[side]}: ` : ""}step ${position}${own}, ${formatDuration(duration / data.scales[side])}${isCompared}`;
  });
  return lines.filter(Boolean).join("\n");
}

// A gap between two spans of a lane, and how far apart their partners are.
function describeGap(data, index, gap) {
  const { spans } = data;
  const other = 1 - gap.side;
  const lines = [`Nothing for ${formatDuration((gap.to - gap.from) / data.scales[gap.side])}`];
  const [before, after] = [gap.before, gap.after].map((i) => partnerOf(spans, index, i));
  if (before >= 0 && after >= 0) {
    const apart = (spans.start[after] - spans.start[before] - spans.duration[before]) / data.scales[other];
    lines.push(`in ${data.letters[other]}, ${formatDuration(Math.max(apart, 0))} between the same spans`);
  }
  return lines.join("\n");
}

// How far the candidate is behind at a time; on the names at the left, what the curve is; empty where nothing tells.
function describeDrift(data, { time, onLabel }) {
  const { at, behind } = data.drift;
  const since = data.clock ? "the end of the collective" : data.compared.length ? "the begin of the step of each" : "time 0";
  let nearest = -1;
  for (let i = 0; i < at.length; i++) if (nearest < 0 || Math.abs(at[i] - time) < Math.abs(at[nearest] - time)) nearest = i;
  if (nearest < 0) return "";
  const [ours, theirs] = data.letters;
  if (onLabel) return `How much later the ops of ${theirs} start and end than their partners in ${ours}, counted from ${since}.\nDrawn at the times of ${ours}: under the curve is what ${ours} does then. Where it climbs, ${theirs} loses time.`;
  if (data.clock && Math.abs(behind[nearest]) <= data.clock.error) return `Where ${ours} is at ${formatTime(at[nearest])}, ${theirs} is there at the same time within the clock error of ${formatDuration(data.clock.error)}`;
  const word = behind[nearest] >= 0 ? "behind" : "ahead of";
  const by = formatDuration(Math.abs(behind[nearest]));
  return `Where ${ours} is at ${formatTime(at[nearest])}, ${theirs} is ${by} ${word} it, counted from ${since}`;
}

function describeChange(data, i, isOne) {
  const { spans } = data;
  const [own, other] = [data.letters[spans.side[i]], data.letters[1 - spans.side[i]]];
  if (spans.status[i] === 2) return `only in ${own}`;
  if (spans.status[i] === 0) return "not compared";
  const ratio = 2 ** spans.change[i];
  if (spans.status[i] === 3) return `other kernels of this op in ${other}: all together, ${data.letters[1]} takes ${ratio.toFixed(2)}×`;
  if (!isOne) return `${data.letters[1]} takes ${ratio.toFixed(2)}× the time of ${data.letters[0]}`;
  const partner = (spans.duration[i] / data.scales[spans.side[i]]) * (spans.side[i] ? 1 / ratio : ratio);
  return `in ${other}: ${formatDuration(partner)}; ${data.letters[1]} takes ${ratio.toFixed(2)}×`;
}
