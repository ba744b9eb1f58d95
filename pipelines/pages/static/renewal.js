// A served page loads itself again when its campaign has other results; its address keeps what a reader chose.

const EVERY = 30_000;

/** Ask for the version of the results from time to time, while the page is seen; a file asks nothing. */
export function renewed() {
  const { path, version } = document.body.dataset;
  if (path === undefined) return;
  const look = async () => {
    if (document.hidden) return;
    // While the server is away, the page stays as it is.
    const answer = await fetch(`${path}/version`).catch(() => null);
    if (answer?.ok && (await answer.text()) !== version) location.reload();
  };
  setInterval(look, EVERY);
  document.addEventListener("visibilitychange", look);
}
