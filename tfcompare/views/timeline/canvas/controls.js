// The rows of buttons and the legend above the timeline, and the list of keys.

const KEYS = [
  ["Drag", "move in time"], ["Ctrl + wheel, W S", "zoom"], ["A D, ← →", "move"], ["Click", "select a span, or measure a gap; double click zooms to it"],
  ["Shift + drag", "measure a range; or drag on the ruler"], ["Alt + drag", "shift the candidate"], ["N P", "next, previous pair of the lane"],
  ["Enter, Shift + Enter", "next, previous span that was found"],
  ["F", "zoom to the selection or range"], ["Home, 0", "the compared step"], ["Esc", "clear the selection and the range"],
  ["Lane’s name", "fold, or show all of its rows"],
];

// Fills `bar`, `jumps` and `help`; returns a function that shows the current state. `actions`: zoom, fit, toggleIdle,
// toggleColour, unshift, nextFound, toggleHelp, jump.
function controls(bar, jumps, help, actions) {
  const button = (text, title, action) => {
    const made = make("button", bar, "", text);
    made.type = "button";
    made.title = title;
    made.setAttribute("aria-label", title);
    made.addEventListener("click", action);
    return made;
  };
  button("+", "Zoom in (W)", () => actions.zoom(0.5));
  button("−", "Zoom out (S)", () => actions.zoom(2));
  button("Fit", "The compared step (Home)", actions.fit);
  const idle = button("Idle lanes", "Show lanes on which nothing runs in the compared step", actions.toggleIdle);
  const colour = button("By op type", "Colour by type of op instead of by change", actions.toggleColour);
  const shift = button("", "Undo the shift of the candidate", actions.unshift);
  button("?", "Keys", actions.toggleHelp);
  const foundBefore = button("‹", "Previous span that was found (Shift + Enter)", () => actions.nextFound(-1));
  const foundCount = make("span", bar, "found");
  const foundNext = button("›", "Next span that was found (Enter)", () => actions.nextFound(1));
  const grid = make("div", help);
  for (const pair of KEYS) for (const text of pair) make("span", grid, "", text);
  const legend = make("div", bar, "legend");
  let shownJumps = "";

  return (data, view, colours) => {
    const isPair = data.is_compared;
    const idleLanes = data.lanes.filter((lane) => lane.idle).length;
    idle.hidden = !idleLanes;
    idle.textContent = `Idle lanes (${idleLanes})`;
    idle.setAttribute("aria-pressed", String(view.all));
    foundCount.textContent = matchText(data.matches, data.selected ?? []);
    foundCount.hidden = data.find === "";
    foundBefore.hidden = foundNext.hidden = !data.matches.id.length;
    colour.hidden = !isPair;
    colour.setAttribute("aria-pressed", String(view.colour === "type"));
    shift.hidden = !view.shift;
    shift.textContent = `${data.letters[1]} shifted by ${formatTime(view.shift)} ×`;
    legend.replaceChildren(...(isPair && view.colour === "change" ? changeLegend(data, colours) : typeLegend(data, colours)));
    if (shownJumps !== JSON.stringify(data.jumps)) showJumps(jumps, data.jumps ?? [], actions.jump);
    shownJumps = JSON.stringify(data.jumps);
  };
}

// Buttons that lead to the places that the page names.
function showJumps(row, jumps, jump) {
  row.hidden = !jumps.length;
  row.textContent = "Go to";
  for (const one of jumps) {
    const button = make("button", row);
    addName(button, one.text);
    button.type = "button";
    button.title = one.title;
    button.addEventListener("click", () => jump(one));
  }
}

function changeLegend(data, colours) {
  return legendOf([
    [colours.shades[1][SHADES], "slower"], [colours.shades[0][SHADES], "faster"], [colours.shades[0][0], "unchanged"],
    [null, "only on one side"], [colours.neutral, "not compared", "In a step without a counterpart in the other run, or outside of steps"], ...paleLegend(data, colours),
  ]);
}

// The op types that are drawn; those that share a colour share an entry.
function typeLegend(data, colours) {
  const entries = data.kinds.map((types, kind) => [KINDS[kind], types.slice(0, 2).join(", ") + (types.length > 2 ? " …" : ""), types.join(", ")]);
  return legendOf([...entries.filter(([, text]) => text), [colours.neutral, "no op"], ...paleLegend(data, colours)]);
}

// What pale colours are, if there are any: of several spans drawn as one, how much of the time they are busy.
function paleLegend(data, colours) {
  const title = "Several short spans, drawn as one: the paler, the less of the time they run. Zoom in to see each";
  return data.spans.count.some((count) => count > 1) ? [[`linear-gradient(90deg, ${colours.shades[0][SHADES]}, ${colours.back})`, "several, with gaps", title]] : [];
}
