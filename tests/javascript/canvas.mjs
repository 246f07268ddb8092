// A canvas that records what is drawn on it; each letter is 6 pixels wide.

const STYLE = { fillStyle: "", strokeStyle: "", lineWidth: 1, globalAlpha: 1, font: "" };

// `drawn` has the rectangles, texts and paths in order: `what`, `at` (its numbers; of a path, its points), `text`, `colour` and `alpha`.
export function recordingContext() {
  const drawn = [];
  const states = [];
  let path = [];
  const record = (what, at, text) => {
    const colour = what.startsWith("stroke") ? context.strokeStyle : context.fillStyle;
    drawn.push({ what, at, text, colour, alpha: context.globalAlpha });
  };
  const context = {
    ...STYLE, drawn,
    fillRect: (...at) => record("fillRect", at),
    strokeRect: (...at) => record("strokeRect", at),
    fillText: (text, ...at) => record("fillText", at, text),
    fill: () => record("fill", path),
    stroke: () => record("stroke", path),
    beginPath: () => (path = []),
    moveTo: (...point) => path.push(point),
    lineTo: (...point) => path.push(point),
    measureText: (text) => ({ width: 6 * text.length }),
    save: () => states.push(Object.fromEntries(Object.keys(STYLE).map((name) => [name, context[name]]))),
    restore: () => Object.assign(context, states.pop()),
    rect() {}, clip() {}, translate() {}, setTransform() {}, clearRect() {},
  };
  return context;
}

export function recordingCanvas() {
  const context = recordingContext();
  return { style: {}, drawn: context.drawn, getContext: () => context };
}
