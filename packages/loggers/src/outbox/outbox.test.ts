import { appendFileSync } from "node:fs";
import { mkdir, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import type { Logger, Snapshot } from "@periodic-eval/core";
import { AbortError } from "p-retry";
import { afterEach, expect, it, vi } from "vitest";
import { at, begins, capabilityAt, temporaryFolder } from "../logged-run.test-data.ts";
import { outboxLogger, type Destination } from "./outbox-logger.ts";

afterEach(() => void vi.useRealTimers());

/** A server that keeps what it was sent, as `[phase, run step, names and values]`. */
function recording(changes: Partial<Destination> = {}) {
  const got: (readonly [string, number, Readonly<Record<string, number>>])[] = [];
  const destination: Destination = {
    name: "server",
    pauseSeconds: 0,
    async open({ run, keep }) {
      if (run === null) keep({ id: "r1" });
      return null;
    },
    async send(points) {
      got.push(...points.map(({ phase, runStep, values }) => [phase, runStep, values] as const));
      return points.length;
    },
    close: async () => {},
    ...changes,
  };
  return { got, destination };
}

/** A process: what it logs of phase a from a step on, to a server that takes all; returns what it sent, and what close said. */
async function session(
  runDir: string,
  from: number,
  log: (logger: Logger) => unknown,
  standing: Snapshot[] = [],
) {
  const { got, destination } = recording();
  const logger = outboxLogger(destination, { runDir });
  await logger.begin?.(begins("a", from, { standing }));
  await log(logger);
  const said = await logger.close!()!.then(
    () => null,
    (error: unknown) => (error as Error).message,
  );
  return { got, said };
}

/** A look of one number, at a percent of the phase. */
function measured(value: number, pct: number | null = null): Snapshot {
  const look = capabilityAt("a", 3, 3, value);
  return { ...look, correct: undefined, total: undefined, pct };
}

it("sends nothing twice that a resumed training says again", async () => {
  const runDir = await temporaryFolder();
  const first = await session(runDir, 0, async (logger) => {
    await logger.train?.({ loss: 1 }, at("a", 1));
    await logger.train?.({ loss: Number.NaN }, at("a", 2));
    await logger.snapshot?.(measured(0.5));
  });
  expect(first.got).toEqual([
    ["a", 1, { "train/loss": 1 }],
    ["a", 2, { "train/loss": Number.NaN }],
    ["a", 3, { "periodic_eval/arc_c_accuracy": 0.5 }],
  ]);
  const second = await session(runDir, 1, async (logger) => {
    // Step 2 had been logged, less what a hook reported of it.
    await logger.train?.({ loss: Number.NaN }, at("a", 2));
    await logger.train?.({ reported: -0 }, at("a", 2));
    await logger.train?.({ loss: 3 }, at("a", 3));
    await logger.snapshot?.(measured(0.5));
    // Measured anew, for it did not stand any more, with the same result.
    await logger.snapshot?.({ ...measured(0.5), created_at: "2026-02-02T00:00:00.000Z" });
  });
  expect(second).toEqual({
    got: [
      ["a", 2, { "train/reported": -0 }],
      ["a", 3, { "train/loss": 3 }],
    ],
    said: null,
  });
  const third = await session(runDir, 1, async (logger) => {
    await logger.train?.({ loss: Number.NaN }, at("a", 2));
    await logger.train?.({ reported: -0 }, at("a", 2));
  });
  expect(third).toEqual({ got: [], said: null });
});

it("sends of a phase that is killed before its first checkpoint, and begins anew, each value once", async () => {
  const runDir = await temporaryFolder();
  const log = (lossAt2: number, perSecond: number) => async (logger: Logger) => {
    await logger.train?.({ loss: 1, tokens_per_second: perSecond }, at("a", 1));
    await logger.train?.({ loss: lossAt2, tokens_per_second: perSecond + 1 }, at("a", 2));
    await logger.snapshot?.(measured(0.5));
  };
  expect((await session(runDir, 0, log(2, 100))).got).toHaveLength(3);
  expect(await session(runDir, 0, log(2, 200))).toEqual({ got: [], said: null });
  // With another learning rate; a step takes its time, whatever it learns.
  const others =
    "values that changed after they were logged: 1, of run steps 2 to 2; server cannot forget and holds both, what stands now as the later";
  expect(await session(runDir, 0, log(1.5, 300))).toEqual({
    got: [["a", 2, { "train/loss": 1.5 }]],
    said: others,
  });
  // And back: what stands is the last that the server has.
  expect(await session(runDir, 0, log(2, 400))).toEqual({
    got: [["a", 2, { "train/loss": 2 }]],
    said: others,
  });
});

it("sends what options that may change on resume make of a look, and says so", async () => {
  const runDir = await temporaryFolder();
  await session(runDir, 0, (logger) => logger.snapshot?.(measured(0.5, 30)));
  // The phase is longer now: the same measurement stands at another percent of it.
  const longer = await session(runDir, 2, (logger) => logger.snapshot?.(measured(0.5, 15)));
  expect(longer.got).toEqual([["a", 3, { "periodic_eval/train_pct": 15 }]]);
  const anew = await session(runDir, 2, async (logger) => {
    await logger.snapshot?.({ ...measured(0.25, 15), status: "partial" });
    await logger.snapshot?.(measured(0.75, 15));
  });
  expect(anew.got.map(([, , values]) => values)).toEqual([
    { "periodic_eval/arc_c_accuracy": 0.25 },
    { "periodic_eval/arc_c_accuracy": 0.75 },
  ]);
  expect(anew.said).toMatch(/^values that changed after they were logged: 2, of run steps 3 to 3; /);
});

it("knows what is told several times at one step, in its order", async () => {
  const runDir = await temporaryFolder();
  const log =
    (...losses: number[]) =>
    async (logger: Logger) => {
      for (const loss of losses) await logger.train?.({ loss }, at("a", 1));
    };
  const sent = async (...losses: number[]) =>
    (await session(runDir, 0, log(...losses))).got.map(([, , values]) => values["train/loss"]);
  expect(await sent(1, 2)).toEqual([1, 2]);
  expect(await sent(1, 2)).toEqual([]);
  // The last that was sent is the last that was said.
  expect(await sent(2, 1)).toEqual([2, 1]);
  expect(await sent(2, 1)).toEqual([]);
});

it("knows a list of one step of which a part has changed, or was added, in the sessions after", async () => {
  const runDir = await temporaryFolder();
  const told = async (...losses: number[]) => {
    const { got, said } = await session(runDir, 0, async (logger) => {
      for (const loss of losses) await logger.train?.({ loss, perplexity: 8 }, at("a", 1));
    });
    return { losses: got.map(([, , values]) => values["train/loss"]), warns: said !== null };
  };
  const nothing = { losses: [], warns: false };
  expect(await told(1, 2)).toEqual({ losses: [1, 2], warns: false });
  expect(await told(1, 3)).toEqual({ losses: [3], warns: true });
  expect(await told(1, 3)).toEqual(nothing);
  // Cut off, then whole again, then with one more.
  expect(await told(1)).toEqual(nothing);
  expect(await told(1, 3)).toEqual(nothing);
  expect(await told(1, 3, 4)).toEqual({ losses: [4], warns: false });
  expect(await told(1, 3, 4)).toEqual(nothing);
  // From the first that differs on, all is sent: the last at the server is the last told.
  expect(await told(1, 5, 4)).toEqual({ losses: [5, 4], warns: true });
  expect(await told(1, 5, 4)).toEqual(nothing);
});

it("sends what stands and a killed process told of to none, once", async () => {
  const runDir = await temporaryFolder();
  const standing = [measured(0.5), { ...measured(0.75), phase: "earlier", step: 9, run_step: 9 }];
  const nothing = () => {};
  const look = (phase: string, step: number, value: number) => [
    phase,
    step,
    { "periodic_eval/arc_c_accuracy": value },
  ];
  expect((await session(runDir, 4, nothing, standing)).got).toEqual([
    look("a", 3, 0.5),
    look("earlier", 9, 0.75),
  ]);
  expect((await session(runDir, 4, nothing, standing)).got).toEqual([]);
});

it("does not wait for a server that never answers, and keeps what it has for the next session", async () => {
  const runDir = await temporaryFolder();
  const never = new Promise<never>(() => {});
  const { destination: silent } = recording({ send: () => never, close: () => never });
  const logger = outboxLogger(silent, { runDir, closeSeconds: 0.05 });
  // Not a promise: a step of training goes on at once.
  expect(logger.train?.({ loss: Number.POSITIVE_INFINITY }, at("a", 1))).toBeUndefined();
  await expect(logger.close?.()).rejects.toThrow("1 of 1 records were not sent (0.05 s were not enough)");
  // The process died in the middle of a line.
  appendFileSync(join(runDir, "loggers", "server.jsonl"), '{"kind":"poi');
  const { got, destination } = recording();
  const next = outboxLogger(destination, { runDir });
  await next.begin?.(begins("a", 1));
  await next.close?.();
  expect(got).toEqual([["a", 1, { "train/loss": Number.POSITIVE_INFINITY }]]);
});

it("goes on from what the server holds where a process died between sending and knowing", async () => {
  const runDir = await temporaryFolder();
  const { destination: dying } = recording({ send: () => new Promise<never>(() => {}) });
  const first = outboxLogger(dying, { runDir, closeSeconds: 0.02 });
  for (const step of [1, 2, 3]) await first.train?.({ loss: step }, at("a", step));
  await expect(first.close?.()).rejects.toThrow("3 of 3");
  const { got, destination } = recording({ open: async () => 2 });
  const second = outboxLogger(destination, { runDir });
  await second.begin?.(begins("a", 3));
  await second.close?.();
  expect(got).toEqual([["a", 3, { "train/loss": 3 }]]);
});

it("tells of a server that fails three times, once, and sends all when it is back", async () => {
  vi.useFakeTimers();
  try {
    let failures = 4;
    const kept = recording();
    const { destination } = recording({
      send: (points, signal) =>
        failures-- > 0 ? Promise.reject(new Error("busy")) : kept.destination.send(points, signal),
    });
    const logger = outboxLogger(destination, { runDir: await temporaryFolder() });
    const step = (n: number) => logger.train?.({ loss: n }, at("a", n));
    await step(1);
    await vi.advanceTimersByTimeAsync(100);
    // One failure is nothing to speak of.
    await step(2);
    // 0.5 s and 1 s lie before the second and third attempt.
    await vi.advanceTimersByTimeAsync(2000);
    expect(() => step(3)).toThrow("busy; it is tried again and again, and all is kept in ");
    await step(4);
    await vi.advanceTimersByTimeAsync(10_000);
    await logger.close?.();
    expect(kept.got.map(([, runStep]) => runStep)).toEqual([1, 2, 3, 4]);
  } finally {
    vi.useRealTimers();
  }
});

it("waits no longer for a server that refuses to end the run", async () => {
  vi.useFakeTimers();
  const refused = () => Promise.reject(new AbortError("not yours"));
  const { destination } = recording({ close: refused });
  const logger = outboxLogger(destination, { runDir: await temporaryFolder() });
  await logger.begin?.(begins("a", 0));
  await expect(logger.close?.()).rejects.toThrow("not yours");
  expect(vi.getTimerCount()).toBe(0);
});

it("waits for as long as it is told, also where no timer holds so long", async () => {
  vi.useFakeTimers();
  const slow = () => new Promise<number>((resolve) => setTimeout(() => resolve(1), 10_000));
  const { destination } = recording({ send: slow });
  const logger = outboxLogger(destination, { runDir: await temporaryFolder(), closeSeconds: 1e7 });
  await logger.train?.({ loss: 1 }, at("a", 1));
  const closed = logger.close!()!.then(
    () => "sent",
    (error: unknown) => String(error),
  );
  await vi.advanceTimersByTimeAsync(11_000);
  expect(await closed).toBe("sent");
});

it("refuses a file that is none of its own, which it reads once a session, and says at the end what that cost", async () => {
  const runDir = await temporaryFolder();
  await mkdir(join(runDir, "loggers"));
  const path = join(runDir, "loggers", "server.jsonl");
  await writeFile(path, "not ours\n");
  const { got, destination } = recording();
  const logger = outboxLogger(destination, { runDir });
  const step = (n: number) => logger.train?.({ loss: n }, at("a", n));
  expect(() => step(1)).toThrow(`[periodic-eval] ${path}: got`);
  await rm(path);
  expect(() => step(2)).toThrow(`[periodic-eval] ${path}: got`);
  await expect(logger.close?.()).rejects.toThrow(`nothing was kept or sent: [periodic-eval] ${path}: got`);
  await step(3);
  await logger.close?.();
  expect(got).toEqual([["a", 3, { "train/loss": 3 }]]);
});
