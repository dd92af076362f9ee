import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { nodeFiles } from "@periodic-eval/core/snapshots";
import { resultsServer } from "@periodic-eval/dashboard/server";
import { Evaluator } from "@periodic-eval/tasks";
import { afterAll, beforeAll, expect, it, onTestFinished } from "vitest";
import { checkpointOpener } from "../eval/open-checkpoint.ts";
import { builtMain } from "../../terminal/built-main.test-data.ts";
import { recordingTerminal } from "../../terminal/recording-terminal.test-data.ts";
import { microWorld } from "../../demo/micro-world.ts";
import { readResults } from "../../run/read-results.ts";
import { smallTasks, writeSmallData } from "../../config/small-tasks.test-data.ts";

let root = "";
beforeAll(async () => void (root = await mkdtemp(join(tmpdir(), "serve-live-"))));
afterAll(() => rm(root, { recursive: true }));

/** What is told of the runs in a folder. */
async function told(folder: string) {
  const server = resultsServer({ root: join(root, folder), readResults });
  const reply = await server.request("/v1/eval?per_page=1", { headers: { Accept: "application/json" } });
  const {
    results_dir: path,
    kind,
    state,
    problem,
  } = (await reply.json()) as Readonly<Record<string, unknown>>;
  return { path, kind, state, problem };
}

it("says that a run of feedback is running while its process holds it, and dead once that was killed", async () => {
  const options = ["preferences=[identity]", "metrics=quick", "batch_size=1", "steps_per_batch=1"];
  const asked = [...options, "num_steps=50", `output_dir=${join(root, "live")}`];
  const args = [builtMain(), "feedback", "--backend", "wasm"];
  const child = spawn(process.execPath, [...args, ...asked], { stdio: ["ignore", "pipe", "inherit"] });
  const ended = once(child, "close");
  onTestFinished(() => void child.kill("SIGKILL"));
  let said = "";
  for await (const chunk of child.stdout) {
    said += String(chunk);
    if (said.includes("step 0")) break;
  }
  expect(said).toContain("step 0");
  // It stands still, and holds its lock.
  child.kill("SIGSTOP");
  const run = { path: "", kind: "feedback", problem: null };
  expect(await told("live")).toEqual({ ...run, state: "running" });
  child.kill("SIGKILL");
  await ended;
  expect(await told("live")).toEqual({ ...run, state: "dead" });
});

it("says that a suite is being measured behind its first task, and finished at its end", async () => {
  const results = join(root, "suite");
  const looks: unknown[] = [];
  await Evaluator.fromCheckpoint(microWorld(), {
    name: "base",
    tasks: await smallTasks(),
    suite: {
      schema_version: 1,
      name: "small",
      tasks: { facts: { limit: 4 }, facts_reply: { limit: 4, data: "facts" } },
    },
    data: await writeSmallData(join(root, "data")),
    results,
    openModel: checkpointOpener("wasm", recordingTerminal()),
    fs: {
      ...nodeFiles,
      async rename(from, to) {
        await nodeFiles.rename(from, to);
        if (to === join(results, "metrics.base.partial.json")) looks.push(await told("suite"));
      },
    },
  }).run();
  const run = { path: "", kind: "results", problem: null };
  expect(looks.length).toBeGreaterThan(0);
  for (const look of looks) expect(look).toEqual({ ...run, state: "running" });
  expect(await told("suite")).toEqual({ ...run, state: "finished" });
});
