// Elements from data. Text becomes text nodes and attributes are set by name, so data is never read as HTML.

export function h(tag, attributes, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes ?? {})) {
    if (typeof value === "function") element.addEventListener(name, value);
    else if (value === true) element.setAttribute(name, "");
    else if (value !== false && value != null) element.setAttribute(name, value);
  }
  add(element, children);
  return element;
}

export function fill(element, ...children) {
  element.replaceChildren();
  add(element, children);
  return element;
}

function add(element, children) {
  for (const child of children.flat(Infinity)) {
    if (child != null && child !== false && child !== "") element.append(child);
  }
}

export function folded(attributes, summary, ...content) {
  return h("details", attributes, h("summary", null, summary), ...content);
}

// Content that is made when a reader first opens it: most transcripts have megabytes of folded tool results.
export function foldedLater(summary, make) {
  const details = folded(null, summary);
  details.addEventListener("toggle", () => details.append(make()), { once: true });
  return details;
}
