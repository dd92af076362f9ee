import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { afterAll, beforeEach, describe, expect, it, onTestFinished, vi, type ExpectStatic } from "vitest";
import {
  at,
  begins,
  expectedAccuracies,
  expectedLosses,
  logKilledRun,
  lossAt,
} from "../logged-run.test-data.ts";
import { killable, type KillableDestination } from "../killable-destination.test-data.ts";
import { outboxLogger } from "../outbox/outbox-logger.ts";
import { wallClock } from "../options.ts";
import type { Destination } from "../outbox/sending.ts";
import { wandbDestination } from "./destination.ts";
import { apiKeyOf, defaultEntity, post } from "./api.ts";
import { wandbLogger } from "./index.ts";
import { wandbServer, type WandbServer } from "./wandb-server.test-data.ts";
import { temporaryFolder } from "../../../testing/src/temporary-folder.test-data.ts";

const key = "secret-of-forty-characters-0123456789abcd";

beforeEach(() => void vi.stubEnv("WANDB_API_KEY", key));
afterAll(() => void vi.unstubAllEnvs());

function destinationOf({ url }: Pick<WandbServer, "url">): Destination {
  const target = { project: "p", entity: null, name: "first", config: { seed: 7 }, baseUrl: url };
  return { ...wandbDestination({ ...target, now: wallClock }), pauseSeconds: 0.01 };
}

const theRun = (expect: ExpectStatic, { runs }: WandbServer) => {
  expect([...runs.keys()]).toHaveLength(1);
  return [...runs.values()][0]!;
};

describe.concurrent("wandbLogger with a recording server", () => {
  it("receives each value of a killed run once, with run_step and phase, also of late grading", async ({
    expect,
    onTestFinished,
  }) => {
    const server = await wandbServer(onTestFinished);
    const runDir = temporaryFolder(onTestFinished);
    const draws = vi.spyOn(Math, "random");
    const processes: KillableDestination[] = [];
    await logKilledRun(
      () => {
        processes.push(killable(destinationOf(server)));
        return outboxLogger(processes.at(-1)!, { runDir, closeSeconds: 200 });
      },
      async () => {
        // Kill when some points are sent and others are not.
        await vi.waitFor(() => expect(processes.at(-1)!.sent).toBeGreaterThan(3), 200_000);
        await processes.at(-1)!.kill();
      },
    );
    // Dropout draws from Math.random too.
    expect(draws).not.toHaveBeenCalled();
    draws.mockRestore();
    const { lines, isComplete, config } = theRun(expect, server);
    expect(isComplete).toBe(true);
    expect(config).toEqual({ seed: { value: 7 } });
    // Lines are numbered without gaps.
    expect(lines.map(({ _step: step }) => step)).toEqual(lines.map((_, i) => i));
    const losses = lines
      .filter((line) => "train/loss" in line)
      .map((line) => [line["run_step"], Number(line["train/loss"])]);
    expect(losses).toEqual(expectedLosses);
    // The speed differs in each process, but is sent once.
    expect(lines.filter((line) => "train/tokens_per_second" in line)).toHaveLength(20);
    const measurements = lines.filter((line) => "periodic_eval/arc_c_accuracy" in line);
    const curve = (phase: string) =>
      measurements
        .filter((line) => line["phase"] === phase)
        .map((line) => [line["run_step"], line["periodic_eval/arc_c_accuracy"]]);
    const { coupling, em } = expectedAccuracies;
    // Points sent before the kill keep their place.
    expect(curve("coupling")).toEqual(coupling);
    expect(curve("em").toSorted(([a], [b]) => Number(a) - Number(b))).toEqual(
      em.toSorted(([a], [b]) => a - b),
    );
    expect(measurements.find((line) => line["run_step"] === 15)).toMatchObject({
      phase: "em",
      run_step: 15,
      "periodic_eval/arc_c_correct": 1,
      "periodic_eval/arc_c_total": 4,
      "periodic_eval/train_pct": 50,
    });
    expect(server.keys.every((sent) => sent === key)).toBe(true);
  });

  it("loses nothing when the server fails, hangs up after accepting a request, or is down on close", async ({
    expect,
    onTestFinished,
  }) => {
    const server = await wandbServer(onTestFinished);
    const runDir = temporaryFolder(onTestFinished);
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
    // The first session ends before the server can be reached, or after its first reply.
    const error = await log(0, 3, 0.01).catch((thrown: Error) => thrown.message);
    expect(error).toMatch(
      /^3 of 3 points were not sent \((timeout after 0.01 s|.*503.*)\); they are kept in /,
    );
    expect(error).toContain(`${join(runDir, "loggers", "wandb.jsonl")} and will be sent`);
    await log(3, 5, 60);
    const { lines } = theRun(expect, server);
    expect(lines.map((line) => [line["_step"], line["run_step"], line["train/loss"]])).toEqual(
      [1, 2, 3, 4, 5].map((step) => [step - 1, step, lossAt(step)]),
    );
    expect(server.faults).toEqual([]);
  });

  it("reports a rejection by W&B without the API key while training continues", async ({
    expect,
    onTestFinished,
  }) => {
    const server = await wandbServer(onTestFinished);
    server.faults.push({ path: /graphql/, reply: { status: 401, body: { error: `no such key: ${key}` } } });
    const logger = outboxLogger(destinationOf(server), { runDir: temporaryFolder(onTestFinished) });
    let warning = "";
    await vi.waitFor(async () => {
      try {
        await logger.train?.({ loss: 1 }, at("em", 1));
      } catch (error) {
        warning = (error as Error).message;
      }
      expect(warning).toMatch(
        /^W&B answered 401 to \/graphql: {"error":"no such key: \*\*\*"}; sending has stopped, and all data is kept in /,
      );
    }, 200_000);
    await expect(logger.close?.()).rejects.toThrow("points were not sent (W&B answered 401");
    expect(warning).not.toContain(key);
  });
});

it.each([
  ["the header", `Basic ${Buffer.from(`api:${key}`).toString("base64")}`],
  ["the key at the place where the message is cut", "x".repeat(180) + key],
])("masks %s that the server echoes", async (_, error) => {
  const server = await wandbServer(onTestFinished);
  server.faults.push({ path: /graphql/, reply: { status: 401, body: error } });
  const failure = post({ baseUrl: server.url, apiKey: key }, "/graphql", {}).catch(String);
  expect(await failure).toMatch(/^AbortError: W&B answered 401 to \/graphql: .*\*\*\*"$/);
});

it("reads the API key of the server's host from .netrc without WANDB_API_KEY", async () => {
  const file = join(temporaryFolder(), ".netrc");
  await writeFile(
    file,
    "machine other\n  login user\n  password wrong\n# machine w.example password no\nmachine w.example:8080\n  login user\n  password right\n",
  );
  vi.stubEnv("WANDB_API_KEY", undefined);
  vi.stubEnv("NETRC", file);
  expect(await apiKeyOf("http://w.example:8080")).toBe("right");
  await expect(apiKeyOf("https://w.example")).rejects.toThrow(
    `W&B needs an API key: set WANDB_API_KEY, or write a machine w.example into ${file}`,
  );
});

it("shortens the messages of a rejected query", async () => {
  const server = await wandbServer(onTestFinished);
  server.faults.push({ path: /graphql/, reply: { body: { errors: [{ message: "y".repeat(1e6) }] } } });
  const failure = defaultEntity({ baseUrl: server.url, apiKey: key }).catch(String);
  expect(await failure).toMatch(/^AbortError: W&B rejected a query: y{297}…$/);
});

it("rejects WANDB_MODE=offline and a missing project", () => {
  vi.stubEnv("WANDB_MODE", "offline");
  expect(() => wandbLogger({ runDir: "run", project: "p" })).toThrow('wandbLogger WANDB_MODE: got "offline"');
  vi.stubEnv("WANDB_MODE", undefined);
  vi.stubEnv("WANDB_PROJECT", undefined);
  expect(() => wandbLogger({ runDir: "run" })).toThrow("wandbLogger options.project: got nothing");
});
