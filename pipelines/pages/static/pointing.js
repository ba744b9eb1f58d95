// What a mark says is shown below its picture: to a pointer, to a finger, and to arrow keys.

const STEPS = { ArrowRight: 1, ArrowDown: 1, ArrowLeft: -1, ArrowUp: -1, Home: -Infinity, End: Infinity };

/**
 * Return the place that a key leads to from a place of `number` places; undefined: the key leads nowhere.
 *
 * @param {{[key: string]: number}} keys
 */
export function stepped(key, place, number, keys = STEPS) {
  return key in keys ? Math.min(number - 1, Math.max(0, place + keys[key])) : undefined;
}

/** Let the marks of a picture say in `readout` what their attribute data-says has. */
export function readable(picture, readout) {
  const marks = [...picture.querySelectorAll("[data-says]")];
  let at = -1;
  const show = (place) => {
    marks[at]?.classList.remove("pointed");
    at = place;
    marks[at]?.classList.add("pointed");
    readout.textContent = marks[at]?.dataset.says ?? "";
  };
  const point = (event) => {
    const mark = event.target.closest("[data-says]");
    if (mark !== null) show(marks.indexOf(mark));
  };
  picture.addEventListener("pointermove", point);
  picture.addEventListener("pointerdown", point);
  picture.addEventListener("keydown", (event) => {
    const to = stepped(event.key, at, marks.length);
    if (to === undefined) return;
    event.preventDefault();
    show(to);
  });
  show(-1);
}
