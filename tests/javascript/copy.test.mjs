// The button that copies: at once, and where the browser refuses, the text is shown.

import assert from "node:assert/strict";
import test from "node:test";

import { joined, SCRIPTS } from "./scripts.mjs";

const { default: mount } = await import(`data:text/javascript,${encodeURIComponent(joined(SCRIPTS.copy))}`);

function element() {
  return {
    style: {},
    children: [],
    replaceChildren(...children) {
      this.children = children;
    },
    select() {
      this.isSelected = true;
    },
  };
}

async function clicked(clipboard) {
  globalThis.document = { createElement: element };
  Object.defineProperty(globalThis, "navigator", { value: { clipboard }, configurable: true });
  const parentElement = element();
  mount({ data: { text: "### B compared with A" }, parentElement });
  const [button, shown] = parentElement.children;
  assert.equal(button.textContent, "Copy for a pull request");
  await button.onclick();
  return [button, shown];
}

test("the text is copied at once, and the button says so", async () => {
  const copied = [];
  const [button, shown] = await clicked({ writeText: async (text) => copied.push(text) });
  assert.deepEqual([copied, button.textContent, shown.children], [["### B compared with A"], "Copied", []]);
});

test("without a clipboard the text is shown, selected", async () => {
  const [button, shown] = await clicked(undefined);
  const [, field] = shown.children;
  assert.deepEqual([field.value, field.readOnly, field.isSelected], ["### B compared with A", true, true]);
  assert.equal(button.textContent, "Copy for a pull request");
});
