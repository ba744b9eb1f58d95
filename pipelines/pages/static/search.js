// A search box for items, with its list of matches: the ARIA pattern "combobox with a list".
import { html } from "./svg.js";

const SHOWN = 12;

/** Return the places of the first matches, items that begin with the text first, and the number of all matches. */
export function matches(lowered, text) {
  const wanted = text.trim().toLowerCase();
  const [begins, holds] = [[], []];
  let number = 0;
  for (let place = 0; place < lowered.length; place += 1) {
    const at = lowered[place].indexOf(wanted);
    if (at < 0) continue;
    number += 1;
    if (at === 0 && begins.length < SHOWN) begins.push(place);
    else if (at > 0 && holds.length < SHOWN) holds.push(place);
  }
  return { places: [...begins, ...holds].slice(0, SHOWN), number };
}

/** Let a user choose among data.items by a box, its list and its live region; `choose` is called with a place. */
export function searchBox(data, { box, list, said }, choose) {
  let active = -1;
  const options = () => [...list.children];
  const close = () => {
    list.hidden = true;
    active = -1;
    box.setAttribute("aria-expanded", "false");
    box.removeAttribute("aria-activedescendant");
  };
  const move = (by) => {
    const all = options();
    if (list.hidden || all.length === 0) return;
    active = (active + by + all.length) % all.length;
    all.forEach((one, place) => one.setAttribute("aria-selected", String(place === active)));
    box.setAttribute("aria-activedescendant", all[active].id);
    all[active].scrollIntoView({ block: "nearest" });
  };
  const take = (option) => {
    choose(Number(option.dataset.place));
    box.value = "";
    close();
  };
  const look = () => {
    const { places, number } = matches(data.lowered, box.value);
    list.replaceChildren(
      ...places.map((place) => {
        const attributes = { role: "option", id: `${list.id}-${place}`, "data-place": place, "aria-selected": "false" };
        const option = html("li", attributes, html("bdi", {}, data.items[place]));
        option.addEventListener("pointerdown", (event) => (event.preventDefault(), take(option)));
        return option;
      }),
    );
    active = -1;
    list.hidden = places.length === 0;
    box.setAttribute("aria-expanded", String(!list.hidden));
    box.removeAttribute("aria-activedescendant");
    const more = number > places.length ? `, the first ${places.length} are listed` : "";
    said.textContent = number === 1 ? "1 item matches" : `${number.toLocaleString("en")} items match${more}`;
  };
  box.addEventListener("input", () => (box.value === "" ? close() : look()));
  box.addEventListener("blur", close);
  box.addEventListener("keydown", (event) => {
    if (event.key === "Escape") close();
    else if (event.key === "ArrowDown" && list.hidden) look();
    else if (event.key === "ArrowDown") move(1);
    else if (event.key === "ArrowUp") move(-1);
    else if (event.key === "Enter" && !list.hidden) take(options()[Math.max(active, 0)]);
    else return;
    if (event.key !== "Escape") event.preventDefault();
  });
}
