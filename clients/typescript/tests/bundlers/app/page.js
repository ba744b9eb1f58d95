// What an app does in a page.
import { Budget, IndexedDbStore, Newest, Policy, Sender } from "hushcount";

globalThis.report = async ({ site, policy, values }) => {
  const store = await IndexedDbStore.open();
  const budget = new Budget(store, { perDay: 100 });
  const sender = new Sender({ site, policy: Policy.parse(policy, new Newest(store)), store, budget }).start();
  const words = await Promise.all(values.map((value) => sender.report(value)));
  const { sent, waiting, dropped } = await sender.deliver(true);
  return { words, sent, waiting, dropped, sentences: (await sender.spent()).words().length };
};
