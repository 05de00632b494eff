// The viewer: filters and list on one side, the conversations of a case on the other.

import { showCase } from "./case.js";
import { buildFilters, showFilters } from "./filters.js";
import { showFound, showList } from "./list.js";
import { walkWithArrows } from "./walk.js";
import { select } from "./selection.js";
import { address, FILTERS, readState } from "./state.js";

const place = (id) => document.getElementById(id);
let built = false;
let listed = null; // The filters that the list was made with.

function build() {
  buildFilters(place("filters"), (changes) => {
    history.replaceState(null, "", address(readState(), { ...changes, page: "" }));
    showViewer(readState());
  });
  walkWithArrows(place("hits"));
  built = true;
}

export function showViewer(state) {
  if (!built) build();
  showFilters(place("filters"), state);
  const units = select(state);
  showFound(place("found"), units);
  showList(place("hits"), units, state);
  place("viewer").classList.toggle("reading", Boolean(state.unit));
  const filters = JSON.stringify(FILTERS.map((name) => state[name]));
  showCase(place("case"), units, state, filters === listed);
  listed = filters;
}
