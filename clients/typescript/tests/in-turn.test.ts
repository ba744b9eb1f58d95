import { expect, test } from "vitest";
import { inTurn } from "../src/sender/in-turn.js";

test("calls that come together are done in groups, in their order", async () => {
  const groups: number[][] = [];
  const work = async (values: readonly number[]): Promise<void> => {
    groups.push([...values]);
    await Promise.resolve();
  };
  const call = inTurn(work, 3);
  await Promise.all([1, 2, 3, 4, 5, 6].map(call));
  expect(groups).toEqual([[1], [2, 3, 4], [5, 6]]);
  await call(7);
  expect(groups.at(-1)).toEqual([7]);
});

test("a value that cannot be done spoils no other, and its caller is told", async () => {
  const done: number[] = [];
  const work = (values: readonly number[]): Promise<void> => {
    if (values.includes(4)) return Promise.reject(new RangeError("four"));
    done.push(...values);
    return Promise.resolve();
  };
  const said = await Promise.allSettled([1, 2, 3, 4, 5, 6].map(inTurn(work, 100)));
  expect(said.map(({ status }) => status === "fulfilled")).toEqual([true, true, true, false, true, true]);
  expect(done.sort()).toEqual([1, 2, 3, 5, 6]);
});
