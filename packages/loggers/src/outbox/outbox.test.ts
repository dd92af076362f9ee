import { appendFileSync } from "node:fs";
import { mkdir, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import type { Logger, Snapshot } from "@periodic-eval/core";
import { AbortError } from "p-retry";
import { afterEach, expect, it, vi } from "vitest";
import { at, begins, capabilityAt } from "../logged-run.test-data.ts";
import { outboxLogger } from "./outbox-logger.ts";
import type { Destination } from "./sending.ts";
import { temporaryFolder } from "../../../testing/src/temporary-folder.test-data.ts";

afterEach(() => void vi.useRealTimers());

/** Returns a destination that records points as `[phase, run step, values]`. */
function recordingServer(changes: Partial<Destination> = {}) {
  const received: (readonly [string, number, Readonly<Record<string, number>>])[] = [];
  const destination: Destination = {
    name: "server",
    pauseSeconds: 0,
    async open({ run, storeRun }) {
      if (run === null) storeRun({ id: "r1" });
      return null;
    },
    async send(points) {
      received.push(...points.map(({ phase, runStep, values }) => [phase, runStep, values] as const));
      return points.length;
    },
    close: async () => {},
    ...changes,
  };
  return { received, destination };
}

/** Simulates a process that logs phase `a` from a step on. Returns the points that the server received and the error of close. */
async function session(
  runDir: string,
  from: number,
  log: (logger: Logger) => unknown,
  standing: Snapshot[] = [],
) {
  const { received, destination } = recordingServer();
  const logger = outboxLogger(destination, { runDir });
  await logger.begin?.(begins("a", from, { standing }));
  await log(logger);
  const warning = await logger.close!()!.then(
    () => null,
    (error: unknown) => (error as Error).message,
  );
  return { received, warning };
}

/** Returns a snapshot of one number at a percent of the phase. */
function measured(value: number, pct: number | null = null): Snapshot {
  const snapshot = capabilityAt("a", 3, 3, value);
  return { ...snapshot, correct: undefined, total: undefined, pct };
}

it("does not send a value again that a resumed training repeats", async () => {
  const runDir = temporaryFolder();
  const first = await session(runDir, 0, async (logger) => {
    await logger.train?.({ loss: 1 }, at("a", 1));
    await logger.train?.({ loss: Number.NaN }, at("a", 2));
    await logger.snapshot?.(measured(0.5));
  });
  expect(first.received).toEqual([
    ["a", 1, { "train/loss": 1 }],
    ["a", 2, { "train/loss": Number.NaN }],
    ["a", 3, { "periodic_eval/arc_c_accuracy": 0.5 }],
  ]);
  const second = await session(runDir, 1, async (logger) => {
    // Step 2 was logged without the metric that a hook reports.
    await logger.train?.({ loss: Number.NaN }, at("a", 2));
    await logger.train?.({ reported: -0 }, at("a", 2));
    await logger.train?.({ loss: 3 }, at("a", 3));
    await logger.snapshot?.(measured(0.5));
    // A repeated measurement with the same result.
    await logger.snapshot?.({ ...measured(0.5), created_at: "2026-02-02T00:00:00.000Z" });
  });
  expect(second).toEqual({
    received: [
      ["a", 2, { "train/reported": -0 }],
      ["a", 3, { "train/loss": 3 }],
    ],
    warning: null,
  });
  const third = await session(runDir, 1, async (logger) => {
    await logger.train?.({ loss: Number.NaN }, at("a", 2));
    await logger.train?.({ reported: -0 }, at("a", 2));
  });
  expect(third).toEqual({ received: [], warning: null });
});

it("sends each value of a phase once if it is killed before its first checkpoint and starts over", async () => {
  const runDir = temporaryFolder();
  const log = (lossAt2: number, perSecond: number) => async (logger: Logger) => {
    await logger.train?.({ loss: 1, tokens_per_second: perSecond }, at("a", 1));
    await logger.train?.({ loss: lossAt2, tokens_per_second: perSecond + 1 }, at("a", 2));
    await logger.snapshot?.(measured(0.5));
  };
  expect((await session(runDir, 0, log(2, 100))).received).toHaveLength(3);
  expect(await session(runDir, 0, log(2, 200))).toEqual({ received: [], warning: null });
  // Another learning rate changes the loss. A changed speed is not reported.
  const warning =
    "1 values between run steps 2 and 2 changed after they were logged; server is append-only and shows both, of which the later one counts";
  expect(await session(runDir, 0, log(1.5, 300))).toEqual({
    received: [["a", 2, { "train/loss": 1.5 }]],
    warning,
  });
  // After changing back, the last value at the server is the current one.
  expect(await session(runDir, 0, log(2, 400))).toEqual({
    received: [["a", 2, { "train/loss": 2 }]],
    warning,
  });
});

it("sends values of a snapshot that changed on resume, and warns", async () => {
  const runDir = temporaryFolder();
  await session(runDir, 0, (logger) => logger.snapshot?.(measured(0.5, 30)));
  // The phase is now longer, so the same measurement is at another percent.
  const longer = await session(runDir, 2, (logger) => logger.snapshot?.(measured(0.5, 15)));
  expect(longer.received).toEqual([["a", 3, { "periodic_eval/train_pct": 15 }]]);
  const repeated = await session(runDir, 2, async (logger) => {
    await logger.snapshot?.({ ...measured(0.25, 15), status: "partial" });
    await logger.snapshot?.(measured(0.75, 15));
  });
  expect(repeated.received.map(([, , values]) => values)).toEqual([
    { "periodic_eval/arc_c_accuracy": 0.25 },
    { "periodic_eval/arc_c_accuracy": 0.75 },
  ]);
  expect(repeated.warning).toMatch(/^2 values between run steps 3 and 3 changed after they were logged; /);
});

it("recognises several values at one step in their order", async () => {
  const runDir = temporaryFolder();
  const log =
    (...losses: number[]) =>
    async (logger: Logger) => {
      for (const loss of losses) await logger.train?.({ loss }, at("a", 1));
    };
  const sent = async (...losses: number[]) =>
    (await session(runDir, 0, log(...losses))).received.map(([, , values]) => values["train/loss"]);
  expect(await sent(1, 2)).toEqual([1, 2]);
  expect(await sent(1, 2)).toEqual([]);
  // The last value at the server is the last one logged.
  expect(await sent(2, 1)).toEqual([2, 1]);
  expect(await sent(2, 1)).toEqual([]);
});

it("recognises changed and added values of one step in later sessions", async () => {
  const runDir = temporaryFolder();
  const logged = async (...losses: number[]) => {
    const { received, warning } = await session(runDir, 0, async (logger) => {
      for (const loss of losses) await logger.train?.({ loss, perplexity: 8 }, at("a", 1));
    });
    return { losses: received.map(([, , values]) => values["train/loss"]), warns: warning !== null };
  };
  const nothing = { losses: [], warns: false };
  expect(await logged(1, 2)).toEqual({ losses: [1, 2], warns: false });
  expect(await logged(1, 3)).toEqual({ losses: [3], warns: true });
  expect(await logged(1, 3)).toEqual(nothing);
  // First only the first value, then both, then one more.
  expect(await logged(1)).toEqual(nothing);
  expect(await logged(1, 3)).toEqual(nothing);
  expect(await logged(1, 3, 4)).toEqual({ losses: [4], warns: false });
  expect(await logged(1, 3, 4)).toEqual(nothing);
  // Everything from the first changed value on is sent, so the last value at the server is the last one logged.
  expect(await logged(1, 5, 4)).toEqual({ losses: [5, 4], warns: true });
  expect(await logged(1, 5, 4)).toEqual(nothing);
});

it("sends each snapshot once that a killed process stored but did not log", async () => {
  const runDir = temporaryFolder();
  const standing = [measured(0.5), { ...measured(0.75), phase: "earlier", step: 9, run_step: 9 }];
  const nothing = () => {};
  const point = (phase: string, step: number, value: number) => [
    phase,
    step,
    { "periodic_eval/arc_c_accuracy": value },
  ];
  expect((await session(runDir, 4, nothing, standing)).received).toEqual([
    point("a", 3, 0.5),
    point("earlier", 9, 0.75),
  ]);
  expect((await session(runDir, 4, nothing, standing)).received).toEqual([]);
});

it("does not wait for a server that never answers, and keeps its points for the next session", async () => {
  const runDir = temporaryFolder();
  const never = new Promise<never>(() => {});
  const { destination: silent } = recordingServer({ send: () => never, close: () => never });
  const logger = outboxLogger(silent, { runDir, closeSeconds: 0.05 });
  // Returns no promise, so training continues at once.
  expect(logger.train?.({ loss: Number.POSITIVE_INFINITY }, at("a", 1))).toBeUndefined();
  await expect(logger.close?.()).rejects.toThrow("1 of 1 points were not sent (timeout after 0.05 s)");
  // The process died while writing a line.
  appendFileSync(join(runDir, "loggers", "server.jsonl"), '{"kind":"poi');
  const { received, destination } = recordingServer();
  const next = outboxLogger(destination, { runDir });
  await next.begin?.(begins("a", 1));
  await next.close?.();
  expect(received).toEqual([["a", 1, { "train/loss": Number.POSITIVE_INFINITY }]]);
});

it("continues from the server's count if a process died before it recorded what it sent", async () => {
  const runDir = temporaryFolder();
  const { destination: dying } = recordingServer({ send: () => new Promise<never>(() => {}) });
  const first = outboxLogger(dying, { runDir, closeSeconds: 0.02 });
  for (const step of [1, 2, 3]) await first.train?.({ loss: step }, at("a", step));
  await expect(first.close?.()).rejects.toThrow("3 of 3");
  const { received, destination } = recordingServer({ open: async () => 2 });
  const second = outboxLogger(destination, { runDir });
  await second.begin?.(begins("a", 3));
  await second.close?.();
  expect(received).toEqual([["a", 3, { "train/loss": 3 }]]);
});

it("warns once after three failures and sends everything when the server is back", async () => {
  vi.useFakeTimers();
  try {
    let failures = 4;
    const server = recordingServer();
    const { destination } = recordingServer({
      send: (points, signal) =>
        failures-- > 0 ? Promise.reject(new Error("busy")) : server.destination.send(points, signal),
    });
    const logger = outboxLogger(destination, { runDir: temporaryFolder() });
    const step = (n: number) => logger.train?.({ loss: n }, at("a", n));
    await step(1);
    await vi.advanceTimersByTimeAsync(100);
    // One failure causes no warning.
    await step(2);
    // The second and third attempt come after 0.5 s and 1 s.
    await vi.advanceTimersByTimeAsync(2000);
    expect(() => step(3)).toThrow("busy; sending will be retried, and all data is kept in ");
    await step(4);
    await vi.advanceTimersByTimeAsync(10_000);
    await logger.close?.();
    expect(server.received.map(([, runStep]) => runStep)).toEqual([1, 2, 3, 4]);
  } finally {
    vi.useRealTimers();
  }
});

it("stops waiting when the server refuses to close the run", async () => {
  vi.useFakeTimers();
  const refused = () => Promise.reject(new AbortError("not yours"));
  const { destination } = recordingServer({ close: refused });
  const logger = outboxLogger(destination, { runDir: temporaryFolder() });
  await logger.begin?.(begins("a", 0));
  await expect(logger.close?.()).rejects.toThrow("not yours");
  expect(vi.getTimerCount()).toBe(0);
});

it("accepts a closeSeconds above the limit of setTimeout", async () => {
  vi.useFakeTimers();
  const slow = () => new Promise<number>((resolve) => setTimeout(() => resolve(1), 10_000));
  const { destination } = recordingServer({ send: slow });
  const logger = outboxLogger(destination, { runDir: temporaryFolder(), closeSeconds: 1e7 });
  await logger.train?.({ loss: 1 }, at("a", 1));
  const closed = logger.close!()!.then(
    () => "sent",
    (error: unknown) => String(error),
  );
  await vi.advanceTimersByTimeAsync(11_000);
  expect(await closed).toBe("sent");
});

it("rejects a foreign journal, reads it once per session, and reports the loss on close", async () => {
  const runDir = temporaryFolder();
  await mkdir(join(runDir, "loggers"));
  const path = join(runDir, "loggers", "server.jsonl");
  await writeFile(path, "not ours\n");
  const { received, destination } = recordingServer();
  const logger = outboxLogger(destination, { runDir });
  const step = (n: number) => logger.train?.({ loss: n }, at("a", n));
  expect(() => step(1)).toThrow(`[periodic-eval] ${path}: got`);
  await rm(path);
  expect(() => step(2)).toThrow(`[periodic-eval] ${path}: got`);
  await expect(logger.close?.()).rejects.toThrow(`nothing was stored or sent: [periodic-eval] ${path}: got`);
  await step(3);
  await logger.close?.();
  expect(received).toEqual([["a", 3, { "train/loss": 3 }]]);
});
