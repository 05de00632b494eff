// A unified diff, line by line; what a line does is said by its sign, not by its color alone.

import { h } from "./dom.js";

const KINDS = { "+": "added", "-": "removed", "@": "dim" };

export function diffBlock(text) {
  const lines = text.split("\n").filter((line) => !line.startsWith("+++") && !line.startsWith("---"));
  return h("pre", { class: "diff", tabindex: 0 }, lines.map((line) => h("span", { class: KINDS[line[0]] ?? "same" }, `${line}\n`)));
}
