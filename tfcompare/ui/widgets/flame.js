// Connects a flame graph to Streamlit: its nodes from Arrow, and the node that was clicked to the page.

const mounted = new WeakMap();

export default function ({ data, parentElement, setTriggerValue }) {
  const drawing = { ...data.drawing, nodes: columns(data.nodes) };
  const before = mounted.get(parentElement);
  if (before) before.update(drawing);
  else mounted.set(parentElement, mountFlame(parentElement, drawing, (node) => setTriggerValue("chosen", { node })));
}
