import { PassThrough } from "node:stream";
import { beforeAll, expect, it } from "vitest";
import { buildPeriodicEval, openSession, type Snapshot } from "@periodic-eval/core";
import { fileStore, readRun } from "@periodic-eval/store";
import { tfjsGuards } from "@periodic-eval/tfjs";
import { LiveClient } from "../../../examples/live-client.ts";
import { microWorld } from "../../../examples/micro-world/paths.ts";
import { temporaryFolder } from "../../testing/src/temporary-folder.test-data.ts";
import { ClientChecks } from "./conformance.ts";
import { serveTrainer } from "./host.ts";
import { embeddedModel, train, type EmbeddedModel } from "./scripted-client.test-data.ts";

const block = {
  questions: microWorld("questions.jsonl"),
  subsample_n: 8,
  eval_every_percent: 50,
  budget: { overhead_percent: null },
  leakage: false,
  traits: { every_percent: 50 },
};

let embedded: EmbeddedModel;
beforeAll(async () => {
  embedded = await embeddedModel();
});

/** Runs a training of four steps that changes nothing, measured by a host at the other end of two streams. */
async function liveTraining(runDir: string, hello: Readonly<Record<string, unknown>> = {}) {
  const { lm, model, tokenizer } = embedded;
  const [stdin, stdout] = [new PassThrough(), new PassThrough()];
  const served = serveTrainer({
    input: stdin,
    output: stdout,
    async open({ config, phase }) {
      const { callbacks, session } = await buildPeriodicEval(config, { phase });
      return { callbacks, ...session, loggers: [] };
    },
    warn: (message) => expect.unreachable(message),
  }).finally(() => stdout.end());
  const client = new LiveClient({
    model: model as never,
    tokenizer,
    guards: tfjsGuards(lm),
    host: { stdin, stdout },
    hello: { run_dir: runDir, config: block, max_steps: 4, ...hello },
  });
  const asked: (number | null)[] = [];
  let { next_step: next } = await client.hello();
  for (let step = 1; step <= 4; step += 1) {
    if (step !== next) continue;
    asked.push(step);
    ({ next_step: next } = await client.call("step", {
      step,
      epoch: step / 4,
      logged: [{ step, metrics: { loss: 1 } }],
    }));
  }
  await client.call("end", {});
  await client.close();
  await served;
  return asked;
}

async function snapshotsOf(runDir: string): Promise<readonly Snapshot[]> {
  const all = await fileStore(runDir).list();
  const named = all.map((one) => [`${one.id} ${one.step}`, one] as const);
  return named.toSorted(([one], [other]) => one.localeCompare(other)).map(([, one]) => one);
}

it(
  "measures over the protocol what a session in the same process measures",
  { timeout: 60_000 },
  async () => {
    const [live, here] = [temporaryFolder(), temporaryFolder()];
    expect(await liveTraining(live)).toEqual([2, 4]);
    const { callbacks, session: settings } = await buildPeriodicEval(block, { phase: "train" });
    const { lm, model } = embedded;
    const guards = tfjsGuards(lm);
    const session = openSession({
      run: here,
      maxSteps: 4,
      model,
      guards,
      callbacks,
      ...settings,
      loggers: [],
    });
    await session.begin();
    for (let step = 1; step <= 4; step += 1) await session.stepEnd({ step, epoch: step / 4 });
    await session.end();
    await session.close();
    // Times differ, and with them the hash of the file. The random numbers of the host are not those of the training.
    const strip = ({ receipt, ...snapshot }: Snapshot) => ({
      ...snapshot,
      receipt: receipt.filter(({ part }) => part !== "math-random"),
      created_at: "",
      timing: {},
      sha256: "",
    });
    expect((await snapshotsOf(live)).map(({ id, step, status }) => `${id} ${step} ${status}`)).toEqual([
      ...[0, 2, 4].map((step) => `capability ${step} complete`),
      ...[0, 2, 4].map((step) => `traits ${step} complete`),
      ...[0, 4].map((step) => `traits-directions ${step} complete`),
    ]);
    expect((await snapshotsOf(live)).map(strip)).toEqual((await snapshotsOf(here)).map(strip));
  },
);

it("measures weights once in a phase of 0 steps, and compares them with the run's start", async () => {
  const runDir = temporaryFolder();
  expect(await train({ runDir })).toBeNull();
  expect(await train({ runDir, hello: { phase: "train-best", max_steps: 0 } })).toBeNull();
  const { phases } = await readRun(runDir);
  expect(phases.map(({ name, state }) => [name, state])).toEqual([
    ["train", "finished"],
    ["train-best", "finished"],
  ]);
  const [snapshot, ...others] = phases.find(({ name }) => name === "train-best")!.snapshots;
  expect(others).toEqual([]);
  const { accuracy } = snapshot!.paired.baseline!;
  expect([snapshot!.step, accuracy!.phase, accuracy!.step]).toEqual([0, "train", 0]);
});

it("finds nothing wrong with the example's client", { timeout: 60_000 }, async () => {
  const { lm, model, tokenizer } = embedded;
  const [stdin, stdout] = [new PassThrough(), new PassThrough()];
  const checked = new ClientChecks().serve(stdin, stdout).finally(() => stdout.end());
  const hello = { run_dir: "unused", max_steps: 4 };
  const host = { stdin, stdout };
  const client = new LiveClient({ model: model as never, tokenizer, guards: tfjsGuards(lm), host, hello });
  let done = await client.hello();
  for (let step = 1; step <= 4 && done.stop === null; step += 1)
    done = await client.call("step", { step, logged: [] });
  await client.call("end", {});
  await client.close();
  expect((await checked).filter(({ problem }) => problem !== null)).toEqual([]);
});
