// The transcripts of a scenario.

import { index } from "./data.js";
import { loaded } from "./loader.js";

export function transcripts(position) {
  return loaded(position, index.scenarios[position].file);
}
