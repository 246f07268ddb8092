// The scripts as browsers get them: files joined in the order in which Python names them.

import { readFileSync } from "node:fs";

const PACKAGE = new URL("../../tfcompare/", import.meta.url);
const read = (path) => readFileSync(new URL(path, PACKAGE), "utf-8");

function listedIn(module, folder) {
  const [, names] = /^_SCRIPTS = \(([^)]*)\)/m.exec(read(module));
  return names.match(/[\w.]+\.js/g).map((name) => folder + name);
}

const CANVAS = listedIn("views/canvas/__init__.py", "views/canvas/");
const TIMELINE = [...CANVAS, ...listedIn("views/timeline/component.py", "views/timeline/canvas/")];
const FLAME = [...CANVAS, ...listedIn("views/flame/component.py", "views/flame/canvas/")];

export const SCRIPTS = {
  timeline: [...TIMELINE, "ui/widgets/arrow.js", "ui/widgets/timeline.js"],
  flame: [...FLAME, "ui/widgets/arrow.js", "ui/widgets/flame.js"],
  report: [...new Set([...TIMELINE, ...FLAME]), ...listedIn("render/html.py", "render/assets/")],
  perfetto: ["ui/widgets/perfetto.js"],
};

export const joined = (files) => files.map(read).join("\n");

// The modules of the drawings, with all that is declared in them.
export const importTimeline = () => importAll(TIMELINE);
export const importFlame = () => importAll(FLAME);

async function importAll(files) {
  const text = joined(files);
  const names = [...text.matchAll(/^(?:function|const) (\w+)/gm)].map(([, name]) => name);
  return import(`data:text/javascript,${encodeURIComponent(`${text}\nexport { ${names} };`)}`);
}
