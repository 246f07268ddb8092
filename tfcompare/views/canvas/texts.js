// Texts, and the elements that hold them. Names are text only, never HTML.

const MOST_LETTERS = 120;

// A name cut in its middle: its end tells most.
function shortenName(name) {
  if (name.length <= MOST_LETTERS) return name;
  const head = Math.floor(MOST_LETTERS / 3);
  return `${name.slice(0, head)}…${name.slice(name.length - (MOST_LETTERS - 1 - head))}`;
}

// The unit for times of a size, in µs, and its name.
function unitOf(size) {
  return size >= 1e6 ? [1e6, "s"] : size >= 1e3 ? [1e3, "ms"] : size >= 1 || size === 0 ? [1, "µs"] : [1e-3, "ns"];
}

function formatDuration(us) {
  const [unit, name] = unitOf(us);
  const value = us / unit;
  return `${value.toFixed(value >= 100 ? 0 : value >= 10 ? 1 : 2)} ${name}`;
}

function make(tag, parent, className = "", text = "") {
  const made = parent.appendChild(document.createElement(tag));
  made.className = className;
  made.textContent = text;
  return made;
}

// Shows a text in `tip` beside the pointer, within `root`; hides it without a text.
function showBeside(event, root, tip, text) {
  tip.hidden = !text;
  if (!text) return;
  tip.textContent = text;
  const box = root.getBoundingClientRect();
  const [x, y] = [event.clientX - box.left, event.clientY - box.top];
  tip.style.left = `${Math.min(x + 14, Math.max(box.width - tip.offsetWidth - 8, 4))}px`;
  tip.style.top = `${y + 18 + tip.offsetHeight > box.height ? Math.max(y - tip.offsetHeight - 10, 2) : y + 18}px`;
}

// Entries of [colour, text, title, look]; no colour for the hatching of what only one run has, which has the class `look`.
function legendOf(entries) {
  return entries.map(([colour, text, title = "", look = "alone"]) => {
    const entry = document.createElement("span");
    entry.title = title;
    const mark = make("i", entry, colour ? "" : look);
    if (colour) mark.style.background = colour;
    entry.append(text);
    return entry;
  });
}
