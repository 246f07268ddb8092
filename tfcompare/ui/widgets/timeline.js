// Connects the timeline to Streamlit: columns from Arrow, changes to the session, and the view to the page's address.

const mounted = new WeakMap();

// Replaces the address, so that going back leads to the page before instead of through every view of this one.
function writeAddress(parameters) {
  const address = new URL(window.location.href);
  for (const [key, value] of Object.entries(parameters)) {
    if (value) address.searchParams.set(key, value);
    else address.searchParams.delete(key);
  }
  if (address.href !== window.location.href) window.history.replaceState(window.history.state, "", address);
}

export default function ({ data, parentElement, setStateValue }) {
  const drawing = { ...data.drawing, spans: columns(data.spans), drift: columns(data.drift), matches: columns(data.matches) };
  if (!data.state.compact) writeAddress(data.address);
  const before = mounted.get(parentElement);
  if (before) {
    before.update(drawing, data.state);
    return;
  }
  mounted.set(parentElement, mount(parentElement, drawing, data.state, setStateValue));
}
