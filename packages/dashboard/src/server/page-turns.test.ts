import { setTimeout as delay } from "node:timers/promises";
import { expect, it } from "vitest";
import { pageTurns } from "./page-turns.ts";

const idle = new AbortController().signal;
const parts = (count: number) => Array.from({ length: count }, (_, at) => at);

it("lets a small page pass between the parts of larger ones, and runs one of the larger ones at a time", async () => {
  const createPage = pageTurns({ lightMs: 100, pages: 16 });
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
  const createPage = pageTurns({ lightMs: 100, pages: 16 });
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

it("makes at most `pages` pages at a time, however many clients ask", async () => {
  const createPage = pageTurns({ lightMs: 500, pages: 4 });
  let [open, most] = [0, 0];
  const page = async (at: number) =>
    createPage(idle, async (turn) => {
      most = Math.max(most, ++open);
      for (const _ of parts(3)) await turn(async () => undefined);
      open--;
      if (at % 7 === 0) throw new Error("damaged");
      return at;
    });
  const settled = await Promise.allSettled(parts(300).map(page));
  expect(settled.filter(({ status }) => status === "fulfilled")).toHaveLength(257);
  expect([most, open]).toEqual([4, 0]);
});

it("lets a small page pass before more large pages than places, which hold nothing while they wait", async () => {
  const createPage = pageTurns({ lightMs: 20, pages: 2 });
  let [open, most] = [0, 0];
  const log: string[] = [];
  const large = async (at: number) =>
    createPage(idle, async (turn) => {
      most = Math.max(most, ++open);
      try {
        for (const _ of parts(10)) await turn(() => delay(10));
      } finally {
        open--;
      }
      log.push("large");
      return at;
    });
  const all = parts(6).map(large);
  const light = createPage(idle, async (turn) => {
    await turn(async () => void log.push("light"));
  });
  await light;
  // Six large pages take 600 ms, those that begin again even longer.
  expect(log.length).toBeLessThan(5);
  expect(await Promise.all(all)).toEqual(parts(6));
  // Two that begin, and the one that is being made as a large page.
  expect(most).toBeLessThanOrEqual(3);
});

it("makes the next large page only after the client has read the one before, and nothing of an aborted attempt", async () => {
  const createPage = pageTurns({ lightMs: 20, pages: 16 });
  let read = () => {};
  const isRead = new Promise<void>((resolve) => (read = resolve));
  const page = async (sent: () => Promise<void>) =>
    createPage(
      idle,
      async (turn, signal) => {
        // Work may report an aborted read as damage instead of failing.
        // On a busy machine timers that are late end early parts in less than their time.
        for (const _ of parts(20)) await turn(() => delay(10)).catch(() => undefined);
        return signal.aborted ? "damaged" : "whole";
      },
      sent,
    );
  expect(await page(() => isRead)).toBe("whole");
  // Begins while the first, which is large, is made but not read.
  const second = page(async () => undefined);
  expect(await Promise.race([second, delay(500, "waiting")])).toBe("waiting");
  read();
  expect(await second).toBe("whole");
});
