// How keys of the contract and numbers read.

export function words(key) {
  return (key ?? "").toLowerCase().replaceAll("_", " ");
}

export function bare(name, prefix) {
  return (name ?? "").startsWith(prefix) ? name.slice(prefix.length) : (name ?? "");
}

export function percent(share) {
  return `${(100 * share).toFixed(1)}%`;
}

export function counted(number, noun) {
  return `${number.toLocaleString("en")} ${noun}${number === 1 ? "" : "s"}`;
}

export function grade(value) {
  return Number.isInteger(value) ? String(value) : value.toFixed(1);
}

export function shortened(text, length) {
  return text.length <= length ? text : `${text.slice(0, length - 1)}…`;
}
