// Mouse, pen and touch: one pointer moves, measures or shifts; two zoom.

const LEAST_MOVE = 4; // pixels; less is a click

// Listens on the lanes (`canvas`) and the ruler (`head`). `actions`: at (what is at an event), view, canShift,
// look, setRange, drawRange, shiftBy, click, hover, hoverHead, scrollTop (get or set), focus.
function listenToPointers(canvas, head, actions) {
  const pointers = new Map();
  let drag = null;

  function apart() {
    if (pointers.size < 2) return 0;
    const [one, other] = [...pointers.values()];
    return Math.max(Math.abs(one.clientX - other.clientX), 12);
  }

  function begin(event, target) {
    actions.focus();
    actions.hover(event, null);
    target.setPointerCapture(event.pointerId);
    pointers.set(event.pointerId, event);
    const { from, to, shift } = actions.view();
    const mode = target === head || event.shiftKey ? "range" : event.altKey && actions.canShift() ? "shift" : "pan";
    drag = {
      mode, from, to, shift, x: event.clientX, y: event.clientY, point: actions.at(event), top: actions.scrollTop(), moved: false,
      range: null, apart: apart(),
    };
    canvas.classList.toggle("moving", target === canvas);
  }

  function move(event, target) {
    if (!drag) {
      if (target === canvas) actions.hover(event, actions.at(event));
      else actions.hoverHead(event);
      return;
    }
    pointers.set(event.pointerId, event);
    const [dx, dy] = [event.clientX - drag.x, event.clientY - drag.y];
    if (Math.abs(dx) + Math.abs(dy) > LEAST_MOVE) drag.moved = true;
    if (!drag.moved) return;
    const { time, usPerPixel } = drag.point;
    if (pointers.size > 1) {
      const factor = drag.apart / apart();
      actions.look(time - (time - drag.from) * factor, time + (drag.to - time) * factor);
    } else if (drag.mode === "range") {
      drag.range = [time, actions.at(event).time].sort((a, b) => a - b);
      actions.drawRange(drag.range);
    } else if (drag.mode === "shift") {
      actions.shiftBy(drag.shift + dx * usPerPixel);
    } else {
      actions.scrollTop(drag.top - dy);
      actions.look(drag.from - dx * usPerPixel, drag.to - dx * usPerPixel);
    }
  }

  function end(event, target) {
    canvas.classList.remove("moving");
    pointers.delete(event.pointerId);
    if (!drag || pointers.size) return;
    const { range, moved, point } = drag;
    drag = null;
    if (range) actions.setRange(range);
    else if (!moved && target === canvas) actions.click(point);
  }

  for (const target of [canvas, head]) {
    target.addEventListener("pointerdown", (event) => begin(event, target));
    target.addEventListener("pointermove", (event) => move(event, target));
    target.addEventListener("pointerup", (event) => end(event, target));
    target.addEventListener("pointercancel", (event) => {
      pointers.delete(event.pointerId);
      drag = null;
    });
  }
  for (const target of [canvas, head]) target.addEventListener("pointerleave", (event) => drag || actions.hover(event, null));
}
