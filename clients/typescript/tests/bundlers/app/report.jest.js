// What an app does in a test under Jest.
import { mkdtemp } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Budget, MemoryStore, Newest, Policy, Sender } from "hushcount";
import { FileStore } from "hushcount/node";

const { SITE, POLICY, VALUES } = process.env;
const STORES = {
  MemoryStore: () => new MemoryStore(),
  FileStore: async () => FileStore.open(await mkdtemp(join(tmpdir(), "person-"))),
};

test.each(Object.keys(STORES))("reports with a %s", async (name) => {
  const store = await STORES[name]();
  const policy = Policy.parse(JSON.parse(POLICY), new Newest(store));
  const sender = new Sender({ site: SITE, policy, store, budget: new Budget(store), delaySeconds: 0 });
  for (const value of JSON.parse(VALUES)) expect(await sender.report(value)).toBe("queued");
  expect(await sender.deliver()).toMatchObject({ sent: 2 * JSON.parse(VALUES).length, waiting: 0, dropped: {} });
  sender.close();
});
