// Keys and the wheel.

// `actions`: zoom, pan, walk, nextFound (forwards or backwards), fit, fitChosen, clear, timeAt (of an event), share (of the width, of pixels), scrollBy,
// toggleHelp.
function listenToKeys(root, { zoom, pan, walk, nextFound, fit, fitChosen, clear, timeAt, share, scrollBy, toggleHelp }) {
  const ofKey = {
    w: () => zoom(0.6), s: () => zoom(1 / 0.6), "+": () => zoom(0.6), "-": () => zoom(1 / 0.6), a: () => pan(-0.25), d: () => pan(0.25),
    ArrowLeft: () => pan(-0.25), ArrowRight: () => pan(0.25), ArrowUp: () => scrollBy(-60), ArrowDown: () => scrollBy(60),
    n: () => walk(1), p: () => walk(-1), f: fitChosen, Home: fit, 0: fit, Escape: clear, "?": toggleHelp,
  };
  root.addEventListener("keydown", (event) => {
    if (event.key === "Enter" && event.target === root) {
      nextFound(event.shiftKey ? -1 : 1); // on a button, the key presses that
      return;
    }
    const action = ofKey[event.key.length === 1 ? event.key.toLowerCase() : event.key];
    if (!action || event.ctrlKey || event.metaKey || event.altKey) return;
    action();
    event.preventDefault();
    event.stopPropagation();
  });
  root.addEventListener("wheel", (event) => {
    if (event.ctrlKey || event.metaKey) zoom(1.0015 ** Math.max(-400, Math.min(400, event.deltaY)), timeAt(event));
    else if (event.shiftKey || Math.abs(event.deltaX) > Math.abs(event.deltaY)) pan(share(event.deltaX || event.deltaY));
    else return;
    event.preventDefault();
  }, { passive: false });
}
