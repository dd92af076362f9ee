import { join } from "node:path";
import { afterAll, beforeEach, describe, expect, it, vi, type ExpectStatic } from "vitest";
import {
  at,
  begins,
  expectedAccuracies,
  expectedLosses,
  logKilledRun,
  lossAt,
  temporaryFolder,
} from "../logged-run.test-data.ts";
import { mortal, type MortalDestination } from "../mortal-destination.test-data.ts";
import { outboxLogger, type Destination } from "../outbox/outbox-logger.ts";
import { wandbDestination } from "./destination.ts";
import { wandbLogger } from "./index.ts";
import { wandbServer, type WandbServer } from "./wandb-server.test-data.ts";

const key = "secret-of-forty-characters-0123456789abcd";
const fromSource = ["--import", "tsx", "-C", "@periodic-eval/source"];

beforeEach(() => void vi.stubEnv("WANDB_API_KEY", key));
afterAll(() => void vi.unstubAllEnvs());

function destinationOf({ url }: Pick<WandbServer, "url">): Destination {
  const place = { project: "p", entity: null, name: "first", config: { seed: 7 }, baseUrl: url };
  return { ...wandbDestination(place, fromSource), pauseSeconds: 0.01 };
}

const theRun = (expect: ExpectStatic, { runs }: WandbServer) => {
  expect([...runs.keys()]).toHaveLength(1);
  return [...runs.values()][0]!;
};

// Most of their time is the start of processes.
describe.concurrent("W&B's SDK and a server that records", () => {
  it("each value of a killed run once, with run_step and phase, late grading as well", async ({
    expect,
    onTestFinished,
  }) => {
    const server = await wandbServer(onTestFinished);
    const runDir = await temporaryFolder(onTestFinished);
    const draws = vi.spyOn(Math, "random");
    const processes: MortalDestination[] = [];
    await logKilledRun(
      () => {
        processes.push(mortal(destinationOf(server)));
        return outboxLogger(processes.at(-1)!, { runDir, closeSeconds: 200 });
      },
      async () => {
        // Some was sent by then, and some was not.
        await vi.waitFor(() => expect(processes.at(-1)!.sent).toBeGreaterThan(3), 200_000);
        await processes.at(-1)!.die();
      },
    );
    // Dropout draws from the same.
    expect(draws).not.toHaveBeenCalled();
    draws.mockRestore();
    const { lines, isComplete, config } = theRun(expect, server);
    expect(isComplete).toBe(true);
    expect(config).toEqual({ seed: { value: 7 } });
    // Every line has its place, in order.
    expect(lines.map(({ _step: step }) => step)).toEqual(lines.map((_, i) => i));
    const losses = lines
      .filter((line) => "train/loss" in line)
      .map((line) => [line["run_step"], Number(line["train/loss"])]);
    expect(losses).toEqual(expectedLosses);
    // Never the same twice, and there once.
    expect(lines.filter((line) => "train/tokens_per_second" in line)).toHaveLength(20);
    const looks = lines.filter((line) => "periodic_eval/arc_c_accuracy" in line);
    const curve = (phase: string) =>
      looks
        .filter((line) => line["phase"] === phase)
        .map((line) => [line["run_step"], line["periodic_eval/arc_c_accuracy"]]);
    const { coupling, em } = expectedAccuracies;
    // What was sent before the kill stands where it was.
    expect(curve("coupling")).toEqual(coupling);
    expect(curve("em").toSorted(([a], [b]) => Number(a) - Number(b))).toEqual(
      em.toSorted(([a], [b]) => a - b),
    );
    expect(looks.find((line) => line["run_step"] === 15)).toMatchObject({
      phase: "em",
      run_step: 15,
      "periodic_eval/arc_c_correct": 1,
      "periodic_eval/arc_c_total": 4,
      "periodic_eval/train_pct": 50,
    });
    expect(server.keys.every((sent) => sent === key)).toBe(true);
  });

  it("loses nothing to a server that fails, hangs up after it took a request, and was down at the end", async ({
    expect,
    onTestFinished,
  }) => {
    const server = await wandbServer(onTestFinished);
    const runDir = await temporaryFolder(onTestFinished);
    const busy = { status: 503, body: { error: "busy" } };
    server.faults.push(
      { path: /graphql/, reply: busy },
      { path: /file_stream/, reply: { hangUp: true }, isTaken: true },
      { path: /file_stream/, reply: busy },
    );
    const log = async (from: number, to: number, closeSeconds: number) => {
      const logger = outboxLogger(destinationOf(server), { runDir, closeSeconds });
      await logger.begin?.(begins("em", from));
      for (let step = from + 1; step <= to; step += 1)
        await logger.train?.({ loss: lossAt(step) }, at("em", step));
      await logger.close?.();
    };
    // The server is out of reach for as long as the first session waits at its end.
    await expect(log(0, 3, 0.01)).rejects.toThrow(
      `3 of 3 records were not sent (0.01 s were not enough); they are kept in ${join(runDir, "loggers", "wandb.jsonl")} and sent`,
    );
    await log(3, 5, 60);
    const { lines } = theRun(expect, server);
    expect(lines.map((line) => [line["_step"], line["run_step"], line["train/loss"]])).toEqual(
      [1, 2, 3, 4, 5].map((step) => [step - 1, step, lossAt(step)]),
    );
    expect(server.faults).toEqual([]);
  });

  it("says what W&B refuses, without the key, and training goes on", async ({ expect, onTestFinished }) => {
    const server = await wandbServer(onTestFinished);
    server.faults.push({ path: /graphql/, reply: { status: 401, body: { error: `no such key: ${key}` } } });
    const logger = outboxLogger(destinationOf(server), { runDir: await temporaryFolder(onTestFinished) });
    let said = "";
    await vi.waitFor(async () => {
      try {
        await logger.train?.({ loss: 1 }, at("em", 1));
      } catch (error) {
        said = (error as Error).message;
      }
      expect(said).toMatch(
        /^W&B answered 401 to \/graphql: {"error":"no such key: …"}; no more is sent, and all is kept in /,
      );
    }, 200_000);
    await expect(logger.close?.()).rejects.toThrow("records were not sent (W&B answered 401");
    expect(said).not.toContain(key);
  });
});

it("is refused where the SDK would throw away what it is given", () => {
  vi.stubEnv("WANDB_MODE", "offline");
  expect(() => wandbLogger({ runDir: "run", project: "p" })).toThrow('wandbLogger WANDB_MODE: got "offline"');
  vi.stubEnv("WANDB_MODE", undefined);
  vi.stubEnv("WANDB_PROJECT", undefined);
  expect(() => wandbLogger({ runDir: "run" })).toThrow("wandbLogger project: got nothing");
});
