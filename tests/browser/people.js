// What the page of tests/browser runs: people with senders of their own, by the package's own entry.
import { Budget, IndexedDbStore, MemoryStore, Newest, Policy, Sender } from "./index.js";

const senderOf = ({ policy, ...where }, store, options = {}) =>
  new Sender({ ...where, policy: Policy.parse(policy, new Newest(store)), store, delaySeconds: 0, strict: true, ...options });

/** Let each value be another person's, with an own store and token; return what became of all. */
async function crowd({ values, atOnce, ...where }) {
  const people = values.values();
  const total = { sent: 0, waiting: 0, dropped: 0, answered: 0, blank: 0, tokens: 0 };
  const tokens = new Set();
  const work = async () => {
    for (const value of people) {
      const store = new MemoryStore();
      const sender = senderOf(where, store, {
        fetch: (url, init) => {
          const token = new Headers(init?.headers).get("client-token");
          if (token !== null) tokens.add(token);
          return fetch(url, init);
        },
      });
      await sender.report(value);
      const done = await sender.deliver();
      total.sent += done.sent;
      total.waiting += done.waiting;
      total.answered += sender.log.filter(({ what }) => what === "answered").length;
      total.blank += Object.values(done.blank).reduce((sum, number) => sum + number, 0);
      total.dropped += Object.values(done.dropped).reduce((sum, number) => sum + number, 0);
      sender.close();
    }
  };
  await Promise.all(Array.from({ length: atOnce }, work));
  return { ...total, tokens: tokens.size };
}

/** Open the one person of this device, as an app does: everything is in IndexedDB. */
async function person(where, options = {}, name = "hushcount") {
  const store = await IndexedDbStore.open(name);
  return senderOf(where, store, { budget: new Budget(store), ...options });
}

Object.assign(globalThis, { people: { crowd, person } });
