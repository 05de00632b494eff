// The views of a page: the report, and a viewer; which of them is seen is said by the address.

export function startViews(readState, showViewer) {
  function route() {
    const state = readState();
    document.getElementById("report").hidden = state.viewer;
    document.getElementById("viewer").hidden = !state.viewer;
    for (const link of document.querySelectorAll("[data-view]")) {
      const here = (link.dataset.view === "viewer") === state.viewer;
      if (here) link.setAttribute("aria-current", "page");
      else link.removeAttribute("aria-current");
    }
    if (state.viewer) showViewer(state);
    else document.getElementById(location.hash.slice(1))?.scrollIntoView();
  }

  document.documentElement.classList.add("scripted");
  document.documentElement.style.setProperty("--top", `${document.querySelector(".top").offsetHeight}px`);
  addEventListener("hashchange", route);
  route();
}
