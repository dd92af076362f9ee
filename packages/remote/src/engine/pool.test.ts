import { PeriodicEvalError } from "@periodic-eval/core";
import { namedStream } from "@periodic-eval/core/random";
import { setTimeout as sleep } from "node:timers/promises";
import { afterEach, beforeAll, expect, it, vi } from "vitest";
import { jsonService } from "../http/json-service.ts";
import { openPool, type Job, type PoolOptions, type Replica } from "./pool.ts";

const live = () => new AbortController().signal;
const service = jsonService({ url: "http://127.0.0.1:9", tokenEnv: null, maxRetries: 0 });
const replica = (url: string): Replica => ({ url, service, adapters: new Map(), provenKinds: new Set() });

/** An error of a request to a server that does not run. */
let refused: unknown;
beforeAll(async () => {
  refused = await service.ask("v1/models", undefined, live()).catch((error: unknown) => error);
});

afterEach(() => {
  vi.useRealTimers();
  vi.restoreAllMocks();
});

/** Returns a new error of a server that answers with a status. */
const rejection = (status: number) =>
  new PeriodicEvalError({
    code: "config",
    where: "a",
    got: `${status}`,
    expected: "",
    fix: "",
    detail: { kind: "http", status },
  });

function poolOf(names: readonly string[], options: Partial<PoolOptions> = {}) {
  const replicas = names.map(replica);
  const parts = { replicas, concurrency: 2, maxRetries: 3, revive: () => Promise.resolve() };
  const pool = openPool({ ...parts, ...options });
  const run = <T>(work: Job<T>["work"], job: Partial<Job<T>> = {}) =>
    pool.run({ model: "base", signal: live(), ...job, work });
  return { pool, replicas, run };
}

it("sends each job to the replica with the fewest jobs, and bounds the jobs of a replica", async () => {
  const { run } = poolOf(["a", "b"]);
  const inFlight: Record<string, number> = { a: 0, b: 0 };
  const most: Record<string, number> = { a: 0, b: 0 };
  const count: Record<string, number> = { a: 0, b: 0 };
  const work = async ({ url }: Replica) => {
    most[url] = Math.max(most[url]!, ++inFlight[url]!);
    count[url]!++;
    await sleep(5);
    inFlight[url]!--;
  };
  await Promise.all(Array.from({ length: 20 }, () => run(work)));
  expect(most).toEqual({ a: 2, b: 2 });
  expect(count).toEqual({ a: 10, b: 10 });
});

it("never has jobs of two models in flight on a replica, and starts jobs in their order", async () => {
  const { run } = poolOf(["a", "b"], { concurrency: 3 });
  const random = namedStream("pool");
  const inFlight: Record<string, string[]> = { a: [], b: [] };
  const started: number[] = [];
  const jobs = Array.from({ length: 200 }, (_, index) => {
    const model = ["base", "x", "y"][Math.floor(random() * 3)]!;
    const work = async ({ url }: Replica) => {
      started.push(index);
      const here = inFlight[url]!;
      here.push(model);
      expect(new Set(here)).toEqual(new Set([model]));
      await sleep(random() * 3);
      here.splice(here.indexOf(model), 1);
      return index;
    };
    return run(work, { model });
  });
  const order = Array.from({ length: 200 }, (_, index) => index);
  expect(await Promise.all(jobs)).toEqual(order);
  expect(started).toEqual(order);
});

it("repeats the jobs of a dead replica on the others, and tries it again later", async () => {
  let isDead = false;
  const revived: string[] = [];
  const { run } = poolOf(["a", "b"], {
    revive: ({ url }) => (revived.push(url), isDead ? Promise.reject(refused) : Promise.resolve()),
  });
  const answers: Record<string, number> = { a: 0, b: 0 };
  const work = async ({ url }: Replica) => {
    await sleep(1);
    if (isDead && url === "a") throw refused;
    answers[url]!++;
    return url;
  };
  await Promise.all(Array.from({ length: 8 }, () => run(work)));
  isDead = true;
  const asked = Array.from({ length: 40 }, () => run(work));
  expect(await Promise.all(asked)).toEqual(Array(40).fill("b"));
  isDead = false;
  // A replica that failed rests for half a second, and for a second after it failed again.
  await expect
    .poll(async () => (await Promise.all(Array.from({ length: 4 }, () => run(work)))).includes("a"), {
      timeout: 20_000,
    })
    .toBe(true);
  expect(new Set(revived)).toEqual(new Set(["a"]));
  expect(answers["a"]! + answers["b"]!).toBeGreaterThanOrEqual(48);
});

it("runs work again on each replica whose idle connection was closed, after its check", async () => {
  const revived: string[] = [];
  const { pool } = poolOf(["a", "b"], { revive: async ({ url }) => void revived.push(url) });
  const done: string[] = [];
  let isClosed = true;
  const work = async ({ url }: Replica) => {
    if (url === "a" && isClosed) {
      isClosed = false;
      throw refused;
    }
    done.push(url);
  };
  await pool.runOnEach({ model: "base", signal: live(), work });
  expect([done, revived]).toEqual([["b", "a"], ["a"]]);
});

it("runs work on the other replicas if one stays dead", async () => {
  const { pool } = poolOf(["a", "b"], { revive: () => Promise.reject(refused) });
  const done: string[] = [];
  const work = async ({ url }: Replica) => {
    if (url === "a") throw refused;
    done.push(url);
  };
  await pool.runOnEach({ model: "base", signal: live(), work });
  expect(done).toEqual(["b"]);
  // It rests: later work does not wait for it.
  await pool.runOnEach({ model: "base", signal: live(), work });
  expect(done).toEqual(["b", "b"]);
});

it("tries a replica again whose rest is over, also for work on each replica", async () => {
  let isDead = true;
  const revive = () => (isDead ? Promise.reject(refused) : Promise.resolve());
  const { pool } = poolOf(["a"], { maxRetries: 0, revive });
  const work = () => (isDead ? Promise.reject(refused) : Promise.resolve());
  const runOnEach = () => pool.runOnEach({ model: "base", signal: live(), work });
  await expect(runOnEach()).rejects.toBe(refused);
  isDead = false;
  await expect.poll(() => runOnEach().then(() => "done", String), { timeout: 10_000 }).toBe("done");
});

it("tries a replica again whose gateway rejected the check with a status", async () => {
  const missing = rejection(404);
  let checks = 0;
  const revive = () => (checks++ === 0 ? Promise.reject(missing) : Promise.resolve());
  const { pool, run } = poolOf(["a", "b"], { maxRetries: 1, revive });
  let count = 0;
  const work = async ({ url }: Replica) => {
    if (url === "a" && count++ === 0) throw refused;
    return url;
  };
  expect(await run(work)).toBe("b");
  // A resting replica does not fail the work on the others.
  await expect.poll(() => pool.runOnEach({ model: "base", signal: live(), work }).then(() => checks)).toBe(1);
  const isBack = async () => (await Promise.all(Array.from({ length: 4 }, () => run(work)))).includes("a");
  await expect.poll(isBack, { timeout: 10_000 }).toBe(true);
});

it("warns once about a replica that fails its check again and again", async () => {
  vi.useFakeTimers();
  const warn = vi.spyOn(console, "warn").mockReturnValue();
  let checks = 0;
  const revive = () => (checks++, Promise.reject(rejection(404)));
  const { run } = poolOf(["a", "b"], { concurrency: 1, revive });
  const work = ({ url }: Replica) => (url === "a" ? Promise.reject(refused) : Promise.resolve(url));
  await run(work);
  for (let jobs = 0; jobs < 4; jobs++) {
    await vi.advanceTimersByTimeAsync(40_000);
    // The second job looks for another replica.
    expect(await Promise.all([run(work), run(work)])).toEqual(["b", "b"]);
  }
  expect(checks).toBeGreaterThan(2);
  expect(warn.mock.calls).toEqual([[expect.stringContaining("continues without a: ")]]);
});

it.each([401, 403])("leaves a replica for good that answers its check with %i", async (status) => {
  vi.useFakeTimers();
  const wrongToken = rejection(status);
  let checks = 0;
  const { run } = poolOf(["a"], { revive: () => (checks++, Promise.reject(wrongToken)) });
  const outcome = expect(run(() => Promise.reject(refused))).rejects.toBe(wrongToken);
  await vi.advanceTimersByTimeAsync(1000);
  await outcome;
  await vi.advanceTimersByTimeAsync(60_000);
  await expect(run(() => Promise.resolve())).rejects.toBe(wrongToken);
  expect(checks).toBe(1);
});

it("ignores an error of a resting replica that failed again before the others are done", async () => {
  vi.useFakeTimers();
  const { pool, run, replicas } = poolOf(["a", "b"], {
    maxRetries: 1,
    revive: () => Promise.reject(rejection(404)),
  });
  let finish: (() => void) | undefined;
  const work = ({ url }: Replica) =>
    url === "a" ? Promise.reject(refused) : new Promise<void>((resolve) => (finish = resolve));
  const all = pool.runOnEach({ model: "base", signal: live(), work });
  await vi.advanceTimersByTimeAsync(5000);
  await expect(run(work, { only: replicas[0]! })).rejects.toMatchObject({ got: "404" });
  finish!();
  await all;
});

it("rejects all jobs once every replica failed too often", async () => {
  const { run } = poolOf(["a", "b"], { maxRetries: 1, revive: () => Promise.reject(refused) });
  const jobs = Array.from({ length: 10 }, () => run(() => Promise.reject(refused)));
  const outcomes = await Promise.allSettled(jobs);
  expect(outcomes.map((one) => one.status === "rejected" && one.reason === refused)).toEqual(
    Array(10).fill(true),
  );
});

it("leaves a replica for good if it serves other numbers after a failure", async () => {
  const changed = new Error("other numbers");
  const { run } = poolOf(["a"], { revive: () => Promise.reject(changed) });
  let count = 0;
  const work = () => (count++ === 0 ? Promise.reject(refused) : Promise.resolve("wrong"));
  await expect(run(work)).rejects.toBe(changed);
  await expect(run(work)).rejects.toBe(changed);
  expect(count).toBe(1);
});

it("removes an aborted job from the queue", async () => {
  const { run } = poolOf(["a"], { concurrency: 1 });
  const stop = new AbortController();
  const first = run(() => sleep(20));
  let hasRun = false;
  const second = run(async () => void (hasRun = true), { signal: stop.signal });
  const third = run(() => Promise.resolve(3));
  stop.abort(new Error("enough"));
  await expect(second).rejects.toThrow("enough");
  await first;
  expect(await third).toBe(3);
  expect(hasRun).toBe(false);
});

it("does not retry an error that another attempt would repeat", async () => {
  const { run } = poolOf(["a", "b"]);
  let count = 0;
  const wrong = new Error("wrong");
  await expect(run(() => (count++, Promise.reject(wrong)))).rejects.toBe(wrong);
  expect(count).toBe(1);
});
