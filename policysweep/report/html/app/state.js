// What is shown, kept in the part of the address after "#", so that every view has a link:
//   #outcomes               a section of the report
//   #list&agent=fair        the conversations that fit some filters
//   #unit=ID&agent=fair     one conversation, with the filters that the list beside it follows

export const FILTERS = [
  "agent", "outcome", "task", "persona", "stance", "fault", "split", "mismatch", "score", "min", "max", "sort",
];
const KEPT = [...FILTERS, "page", "alone"];

export function readState() {
  const found = new URLSearchParams(location.hash.slice(1));
  const state = { viewer: found.has("list") || found.has("unit"), unit: found.get("unit") ?? "" };
  for (const name of KEPT) state[name] = found.get(name) ?? "";
  return state;
}

export function address(state, changes) {
  const next = { ...state, ...changes };
  const kept = new URLSearchParams();
  if (next.unit) kept.set("unit", next.unit);
  for (const name of KEPT) if (next[name]) kept.set(name, next[name]);
  return next.unit ? `#${kept}` : `#list&${kept}`;
}
