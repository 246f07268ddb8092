import assert from "node:assert/strict";
import test from "node:test";

import { ESLint } from "eslint";

import { joined, SCRIPTS } from "./scripts.mjs";

const linter = new ESLint({ cwd: import.meta.dirname });

// Each finding with the line that it is about: numbers of lines are those of the joined files.
function findings({ source, messages }) {
  return messages.map(({ line, message, ruleId }) => `${source.split("\n")[line - 1].trim()}: ${message} (${ruleId})`);
}

for (const [name, files] of Object.entries(SCRIPTS)) {
  test(`eslint finds nothing in the script of the ${name}`, async () => {
    const results = await linter.lintText(joined(files), { filePath: `${name}.js` });
    assert.deepEqual(results.flatMap(findings), []);
  });
}

test("eslint finds nothing in these tests", async () => {
  const results = await linter.lintFiles("*.mjs");
  assert.deepEqual(results.flatMap(findings), []);
});
