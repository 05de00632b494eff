// Loads a file of transcripts by its key. It is a script beside the page, because a page that was opened from disk
// may not read files but may run them; each calls `policysweepTranscripts` with its key and its content.

const KEPT = 12;
const arrived = new Map();

globalThis.policysweepTranscripts = (key, content) => {
  arrived.set(key, content);
  if (arrived.size > KEPT) arrived.delete(arrived.keys().next().value);
};

export async function loaded(key, file) {
  if (!arrived.has(key)) await run(file);
  if (!arrived.has(key)) throw new Error(`${file} holds something else.`);
  return arrived.get(key);
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
