// Groups within groups: only one level is drawn, and buttons lead to the levels below and above it.
import { stateOf } from "./state.js";
import { html } from "./svg.js";

/** Return a function that returns the rows of the current level. Buttons change the level, and then call `draw`. */
export function drill(figure, rows, draw) {
  const way = figure.querySelector(".way");
  if (way === null) return () => rows;
  const { values: [wanted], keep } = stateOf(figure, "level");
  let at = rows.some((row) => row.row.dataset.parent === wanted) ? wanted : "";
  const below = (path) => rows.filter((row) => row.row.dataset.parent === path);
  const go = (path) => {
    at = path;
    keep(at === "" ? [] : [at]);
    draw();
    show();
    way.querySelector("button")?.focus();
  };
  const button = (text, path) => {
    const made = html("button", { type: "button" }, html("bdi", {}, text));
    made.addEventListener("click", () => go(path));
    return html("li", {}, made);
  };
  const show = () => {
    const above = [];
    for (let path = at; path !== ""; ) {
      const row = rows.find((one) => one.row.dataset.path === path);
      above.unshift(path);
      path = row.row.dataset.parent;
    }
    const up = [["All", ""], ...above.map((path) => [path, path])].slice(0, -1);
    const down = below(at).filter((row) => below(row.row.dataset.path).length > 0);
    way.replaceChildren(
      ...(at === "" ? [] : up.map(([text, path]) => button(`↑ ${text}`, path))),
      ...down.map((row) => button(`↓ ${row.name}`, row.row.dataset.path)),
    );
    figure.querySelector(".said").textContent = at === "" ? "all are shown" : `parts of ${at} are shown`;
  };
  show();
  return () => below(at);
}
