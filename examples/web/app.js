// A page that counts which of its buttons are used. The features work even if counting fails.
import { Budget, IndexedDbStore, Newest, Policy, Sender } from "./index.js";

const FEATURES = {
  sort: (lines) => lines.toSorted(),
  unique: (lines) => [...new Set(lines)],
  "upper-case": (lines) => lines.map((line) => line.toUpperCase()),
  reverse: (lines) => lines.toReversed(),
  count: (lines) => {
    show("said", `${lines.length} lines, ${lines.join(" ").split(/\s+/u).filter(Boolean).length} words.`);
    return lines;
  },
};

const element = (id) => document.getElementById(id);
const show = (id, text) => {
  element(id).textContent = text;
};

async function begin() {
  // The app's own settings; policy.json comes with the app, never from the collector.
  const { site, policy, windowSeconds, factor } = await (await fetch("/settings.json")).json();
  show("factor", `by a factor of ${factor} at most`);
  const store = await IndexedDbStore.open();
  const budget = new Budget(store, { perDay: 10, lifetime: 200 });
  const sender = new Sender({
    site, policy: Policy.parse(policy, new Newest(store)), store, budget, windowSeconds, delaySeconds: 10,
  });
  sender.start();
  return { sender, budget };
}

// If the browser stores nothing, or the server is down, the page works and counts nothing.
const counting = begin().catch(() => undefined);

async function count(feature) {
  const { sender } = (await counting) ?? {};
  // Opted out, over the cap of a minute, or offline at the first visit: the person need not be told.
  await sender?.report(feature);
  await showSpent();
}

async function showSpent() {
  const { sender } = (await counting) ?? {};
  if (sender === undefined) return;
  const spent = await sender.spent();
  element("counting").checked = !spent.optedOut;
  element("spent").replaceChildren(
    ...spent.words().map((sentence) => {
      const item = document.createElement("li");
      item.textContent = sentence;
      return item;
    }),
  );
  const { what, reports } = sender.log.at(-1) ?? {};
  const words = { queued: "A report waits a few seconds, a random time.", sent: `Sent: ${reports} sealed.` };
  show("waiting", words[what] ?? "");
}

async function showEstimates() {
  const answer = await fetch("/estimates.json").catch(() => undefined);
  if (!answer?.ok) return;
  const { window, reports, rows } = await answer.json();
  show("window", `In the minute from ${new Date(window).toLocaleTimeString()}: ${reports} reports, most of simulated people.`);
  element("estimates").hidden = false;
  element("estimates").tBodies[0].replaceChildren(
    ...rows.map(({ item, count: about, low, high }) => {
      const row = document.createElement("tr");
      for (const text of [item, Math.round(about), `${Math.round(low)} to ${Math.round(high)}`]) {
        row.insertCell().textContent = text;
      }
      return row;
    }),
  );
}

for (const button of document.querySelectorAll("[data-feature]")) {
  button.addEventListener("click", () => {
    show("said", "");
    const text = element("text");
    text.value = FEATURES[button.dataset.feature](text.value.split("\n")).join("\n");
    void count(button.dataset.feature);
  });
}

element("counting").addEventListener("change", async ({ target }) => {
  const { sender, budget } = (await counting) ?? {};
  // Switching off deletes waiting reports and the token; what was spent stays spent.
  await (target.checked ? budget?.optIn() : sender?.forget());
  await showSpent();
});

void showSpent();
void showEstimates();
setInterval(showSpent, 2_000);
setInterval(showEstimates, 5_000);
