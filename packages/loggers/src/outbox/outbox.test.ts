import { appendFileSync } from "node:fs";
import { mkdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { AbortError } from "p-retry";
import { afterEach, expect, it, vi } from "vitest";
import { at, capabilityAt, temporaryFolder } from "../logged-run.test-data.ts";
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

it("sends nothing twice that a resumed training says again, and all of one that begins anew", async () => {
  const runDir = await temporaryFolder();
  const { got, destination } = recording();
  const look = capabilityAt("a", 3, 3, null);
  const metric = { ...look.metrics["accuracy"]!, value: 0.5 };
  const measured = {
    ...look,
    metrics: { accuracy: metric },
    correct: undefined,
    total: undefined,
    pct: null,
  };

  const first = outboxLogger(destination, { runDir });
  await first.begin?.({ ...at("a", 0), resumed: false });
  await first.train?.({ loss: 1 }, at("a", 1));
  await first.train?.({ loss: 2 }, at("a", 2));
  await first.snapshot?.(measured);
  await first.close?.();
  expect(got).toEqual([
    ["a", 1, { "train/loss": 1 }],
    ["a", 2, { "train/loss": 2 }],
    ["a", 3, { "periodic_eval/arc_c_accuracy": 0.5 }],
  ]);

  const second = outboxLogger(destination, { runDir });
  await second.begin?.({ ...at("a", 1), resumed: true });
  // Step 2 had been logged, less what a hook reported of it.
  await second.train?.({ loss: 2 }, at("a", 2));
  await second.train?.({ reported: 7 }, at("a", 2));
  await second.train?.({ loss: 3 }, at("a", 3));
  await second.snapshot?.(measured);
  // Measured anew, for it did not stand any more.
  await second.snapshot?.({ ...measured, created_at: "2026-02-02T00:00:00.000Z" });
  await second.close?.();
  expect(got.slice(3)).toEqual([
    ["a", 2, { "train/reported": 7 }],
    ["a", 3, { "train/loss": 3 }],
    ["a", 3, { "periodic_eval/arc_c_accuracy": 0.5 }],
  ]);

  const anew = outboxLogger(destination, { runDir });
  await anew.begin?.({ ...at("a", 0), resumed: false });
  await anew.train?.({ loss: 1.5 }, at("a", 1));
  await anew.close?.();
  expect(got.slice(6)).toEqual([["a", 1, { "train/loss": 1.5 }]]);
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
  await next.begin?.({ ...at("a", 1), resumed: true });
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
  await second.begin?.({ ...at("a", 3), resumed: true });
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
  await logger.begin?.({ ...at("a", 0), resumed: false });
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

it("refuses a file that is none of its own", async () => {
  const runDir = await temporaryFolder();
  await mkdir(join(runDir, "loggers"));
  const path = join(runDir, "loggers", "server.jsonl");
  await writeFile(path, "not ours\n");
  const logger = outboxLogger(recording().destination, { runDir });
  expect(() => logger.train?.({ loss: 1 }, at("a", 1))).toThrow(`[periodic-eval] ${path}: got`);
});
