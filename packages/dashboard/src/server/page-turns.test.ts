import { setTimeout as delay } from "node:timers/promises";
import { expect, it } from "vitest";
import { pageTurns } from "./page-turns.ts";

const idle = new AbortController().signal;
const parts = (count: number) => Array.from({ length: count }, (_, at) => at);

it("lets a small page pass between the parts of larger ones, and runs one of the larger ones at a time", async () => {
  const createPage = pageTurns(100);
  const log: string[] = [];
  const heavy = (name: string) =>
    createPage(idle, async (turn) => {
      for (const _ of parts(15)) await turn(() => delay(10));
      for (const _ of parts(2)) await turn(async () => void log.push(name));
    });
  let open = 0;
  const all = [heavy("first"), heavy("second"), heavy("third")];
  await delay(130);
  const light = createPage(idle, async (turn) => {
    for (const _ of parts(3))
      await turn(async () => {
        expect(++open).toBe(1);
        await delay(1);
        open--;
      });
    log.push("light");
  });
  await light;
  expect(log).toEqual(["light"]);
  await Promise.all(all);
  const ends = log.slice(1);
  expect(ends.toSorted()).toEqual(["first", "first", "second", "second", "third", "third"]);
  expect(ends.filter((name, at) => at % 2 === 0 && ends[at + 1] === name)).toHaveLength(3);
});

it("ends a page whose client has disconnected at its next part, and continues with the others", async () => {
  const createPage = pageTurns();
  const gone = new AbortController();
  let done = 0;
  const endless = () =>
    createPage(gone.signal, async (turn) => {
      for (;;) await turn(async () => void (await delay(1), done++));
    });
  const abandoned = Promise.allSettled([endless(), endless(), endless()]);
  await delay(20);
  gone.abort(new Error("disconnected"));
  const settled = await abandoned;
  expect(settled.map(({ status }) => status)).toEqual(["rejected", "rejected", "rejected"]);
  const before = done;
  expect(await createPage(idle, (turn) => turn(async () => "page"))).toBe("page");
  expect(done).toBe(before);
});

it("does not count the time in which a page waits for its turn", async () => {
  const createPage = pageTurns(100);
  let finish = () => {};
  const finished = new Promise<void>((resolve) => (finish = resolve));
  const heavy = createPage(idle, async (turn) => {
    await turn(() => delay(150));
    await turn(() => delay(150));
    await finished;
  });
  const light = createPage(idle, async (turn) => {
    for (const _ of parts(3)) await turn(async () => undefined);
    return "light";
  });
  expect(await light).toBe("light");
  finish();
  await heavy;
});
