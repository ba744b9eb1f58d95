// The state of the page in its address, so that a link shows the same: the open panel, and what its parts show.

const given = new URLSearchParams(location.hash.slice(1));
const kept = new Map([[given.get("tab") ?? "", given]]);
let open = given.get("tab") ?? "";

// Whoever changes the address, or follows a link within the page, wants another state.
addEventListener("hashchange", () => location.reload());

/** Return the title of the panel that is open; empty if the address names none. */
export function openPanel() {
  return open;
}

/** Remember the panel that a reader opened. */
export function show(title) {
  open = title;
  write();
}

/** Return the values of a part of a panel, and the function that remembers other values; none: the part's default. */
export function stateOf(element, part) {
  const title = element.closest(".panel").dataset.name;
  if (!kept.has(title)) kept.set(title, new URLSearchParams());
  const mine = kept.get(title);
  const set = (values) => {
    mine.delete(part);
    for (const value of values) mine.append(part, value);
    open = title;
    write();
  };
  return { values: mine.getAll(part), keep: set };
}

function write() {
  const all = new URLSearchParams(kept.get(open));
  all.delete("tab");
  if (open !== "") all.set("tab", open);
  history.replaceState(null, "", `#${all}`);
}
