// The scripts as browsers get them: files joined in the order in which Python names them.

import { readFileSync } from "node:fs";

const PACKAGE = new URL("../../tfcompare/", import.meta.url);
const read = (path) => readFileSync(new URL(path, PACKAGE), "utf-8");

function listedIn(module, folder) {
  const [, names] = /^_SCRIPTS = \(([^)]*)\)/m.exec(read(module));
  return names.match(/[\w.]+\.js/g).map((name) => folder + name);
}

const TIMELINE = listedIn("views/timeline/component.py", "views/timeline/canvas/");

export const SCRIPTS = {
  timeline: [...TIMELINE, "ui/widgets/timeline.js"],
  report: [...TIMELINE, ...listedIn("render/html.py", "render/assets/")],
  perfetto: ["ui/widgets/perfetto.js"],
  copy: ["ui/frame/copy.js"],
};

export const joined = (files) => files.map(read).join("\n");

// The module of the timeline, with all that is declared in it.
export async function importTimeline() {
  const text = joined(TIMELINE);
  const names = [...text.matchAll(/^(?:function|const) (\w+)/gm)].map(([, name]) => name);
  return import(`data:text/javascript,${encodeURIComponent(`${text}\nexport { ${names} };`)}`);
}
