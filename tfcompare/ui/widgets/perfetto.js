// Shows a trace in Perfetto, which this server has at `perfetto/`, and hands it over once that is ready.

const SHOWN = new WeakMap();

export default function ({ data, parentElement }) {
  if (SHOWN.get(parentElement) === data.key) return undefined;
  SHOWN.set(parentElement, data.key);
  const home = new URL("perfetto/", window.location.origin + window.location.pathname.replace(/[^/]*$/, ""));
  const frame = document.createElement("iframe");
  frame.title = "Perfetto";
  frame.style.cssText = "width: 100%; height: 640px; border: 0";
  frame.src = `${home.href}#!/viewer?mode=embedded`;
  parentElement.replaceChildren(frame);
  const bytes = Uint8Array.from(atob(data.trace), (letter) => letter.charCodeAt(0));
  const asking = setInterval(() => frame.contentWindow?.postMessage("PING", home.origin), 100);
  const onMessage = (event) => {
    if (event.source !== frame.contentWindow || event.origin !== home.origin || event.data !== "PONG") return;
    clearInterval(asking);
    window.removeEventListener("message", onMessage);
    frame.contentWindow.postMessage({ perfetto: { buffer: bytes.buffer, title: data.title } }, home.origin);
  };
  window.addEventListener("message", onMessage);
  return () => {
    clearInterval(asking);
    window.removeEventListener("message", onMessage);
  };
}
