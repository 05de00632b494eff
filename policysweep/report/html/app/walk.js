// Arrow keys walk through the list; each entry is a link, so Enter opens it.
export function walkWithArrows(place) {
  place.addEventListener("keydown", (event) => {
    const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    const links = [...place.querySelectorAll("li a")];
    const at = links.indexOf(document.activeElement);
    if (!step || at < 0 || !links[at + step]) return;
    event.preventDefault();
    links[at + step].focus();
  });
}
