// Loads the transcripts of a scenario. They lie in a script beside the page, because a page that was opened
// from disk may not read files but may run them; each script calls `policysweepTranscripts`.

import { index } from "./data.js";

const KEPT = 12;
const arrived = new Map();

globalThis.policysweepTranscripts = (position, content) => {
  arrived.set(position, content);
  if (arrived.size > KEPT) arrived.delete(arrived.keys().next().value);
};

export async function transcripts(position) {
  if (!arrived.has(position)) await run(index.scenarios[position].file);
  if (!arrived.has(position)) throw new Error(`${index.scenarios[position].file} holds another scenario.`);
  return arrived.get(position);
}

function run(file) {
  return new Promise((resolve, reject) => {
    const script = document.createElement("script");
    script.src = file;
    script.addEventListener("load", () => {
      script.remove();
      resolve();
    });
    script.addEventListener("error", () => {
      script.remove();
      reject(new Error(`${file} could not be loaded: keep the folder report-data beside report.html.`));
    });
    document.head.append(script);
  });
}
