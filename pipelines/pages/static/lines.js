// Shares of chosen items over windows: for each item a line, and a band for its intervals.
import { ends } from "./columns.js";
import { scale, sheet, shown, svg, ticks } from "./svg.js";

const HIGH = 300;
const LEFT = 58;
const DASHES = ["", "7 3", "2 3", "9 3 2 3", "4 2", "12 4"];

/** Draw lines, each {name, colour, points}; `pick` is called with the place of the window under the pointer. */
export function lines(drawn, names, width, { name, pick }) {
  const shares = drawn.flatMap(({ points }) => points.flatMap((one) => [one.low / one.reports, one.high / one.reports]));
  const least = Math.min(0, ...shares);
  const most = Math.max(...shares, least + 1e-9);
  const x = scale(0, Math.max(names.length - 1, 1), LEFT, width - 12);
  const y = scale(least, most, HIGH - 10, 10);
  const picture = sheet(width, HIGH + 20, name);
  for (const value of ticks(least, most, 5)) {
    picture.append(svg("path", { class: "grid", d: `M${LEFT} ${y(value)}H${width - 8}` }));
    picture.append(svg("text", { x: LEFT - 6, y: y(value) + 4, "text-anchor": "end" }, shown(value, "share")));
  }
  picture.append(svg("path", { class: "zero", d: `M${LEFT} ${y(0)}H${width - 8}` }));
  drawn.forEach(({ name: item, colour, points }) => {
    const at = (one, end) => `${x(one.place)} ${y(one[end] / one.reports)}`;
    const upper = points.map((one) => at(one, "high"));
    const lower = points.map((one) => at(one, "low")).reverse();
    const group = svg("g", { class: `mark series s${colour}` }, svg("title", {}, item));
    group.append(svg("path", { class: "band", d: `M${[...upper, ...lower].join("L")}Z` }));
    const dash = DASHES[colour % DASHES.length];
    group.append(svg("path", { class: "curve", d: `M${points.map((one) => at(one, "count")).join("L")}`, "stroke-dasharray": dash }));
    if (points.length <= 40) {
      for (const one of points) group.append(svg("circle", { cx: x(one.place), cy: y(one.count / one.reports), r: 3 }));
    }
    picture.append(group);
  });
  const hair = svg("path", { class: "hair", d: "" });
  picture.append(hair, ...ends(names, width - LEFT, HIGH + 14).map((text) => (text.setAttribute("transform", `translate(${LEFT})`), text)));
  picture.addEventListener("pointermove", (event) => {
    const box = picture.getBoundingClientRect();
    const ratio = (((event.clientX - box.left) * width) / box.width - LEFT) / (width - 12 - LEFT);
    const place = Math.min(names.length - 1, Math.max(0, Math.round(ratio * (names.length - 1))));
    hair.setAttribute("d", `M${x(place)} 10V${HIGH - 10}`);
    pick(place);
  });
  return picture;
}
