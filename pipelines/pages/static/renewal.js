// A served page loads itself again when its campaign has other results; its address keeps what a reader chose.

const EVERY = 30_000;

/** Load the page again if its campaign has another version of the results. */
export async function look() {
  const { path, version } = document.body.dataset;
  // While the server is away, the page stays as it is.
  const answer = await fetch(`${path}/version`).catch(() => null);
  if (answer?.ok && (await answer.text()) !== version) location.reload();
}

/** Look from time to time, while the page is seen; a file asks nothing. */
export function renewed() {
  if (document.body.dataset.path === undefined) return;
  const seen = () => document.hidden || look();
  setInterval(seen, EVERY);
  document.addEventListener("visibilitychange", seen);
}
