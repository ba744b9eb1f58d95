// ARIA tabs with arrow keys: one panel is visible. In print, and without scripts, all panels are visible.
import { openPanel, show, stateOf } from "./state.js";

/** Make tabs of a list of links to panels; `opened` is called with each panel that is shown. */
export function tabs(list, opened) {
  const links = [...list.querySelectorAll("a")];
  const panels = links.map((link) => document.getElementById(link.hash.slice(1)));
  const select = (number, focus) => {
    links.forEach((link, place) => {
      link.setAttribute("aria-selected", String(place === number));
      link.tabIndex = place === number ? 0 : -1;
      panels[place].classList.toggle("closed", place !== number);
    });
    if (focus) {
      links[number].focus();
      show(panels[number].dataset.name);
    }
    opened(panels[number]);
  };
  list.setAttribute("role", "tablist");
  for (const item of list.children) item.setAttribute("role", "presentation");
  links.forEach((link, place) => {
    link.setAttribute("role", "tab");
    link.setAttribute("aria-controls", panels[place].id);
    panels[place].setAttribute("role", "tabpanel");
    link.addEventListener("click", (event) => (event.preventDefault(), select(place, true)));
    link.addEventListener("keydown", (event) => {
      const to = { ArrowRight: place + 1, ArrowLeft: place - 1, Home: 0, End: links.length - 1 }[event.key];
      if (to === undefined) return;
      event.preventDefault();
      select((to + links.length) % links.length, true);
    });
  });
  const wanted = panels.findIndex((panel) => panel.dataset.name === openPanel());
  select(Math.max(wanted, 0), false);
}

/** Show one of several parts, chosen by its heading in a list. */
export function choices(block, opened) {
  const parts = [...block.querySelectorAll(":scope > section")];
  const list = block.querySelector("select");
  const { values: [number], keep } = stateOf(block, "compare");
  const change = () => {
    parts.forEach((part, place) => part.classList.toggle("closed", place !== list.selectedIndex));
    opened(parts[list.selectedIndex]);
  };
  if (number in parts) list.selectedIndex = Number(number);
  list.addEventListener("change", () => {
    keep([String(list.selectedIndex)]);
    change();
  });
  change();
}
