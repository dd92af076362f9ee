import { useBackend } from "@periodic-eval/models";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { join } from "node:path";
import { nodeFiles } from "@periodic-eval/store";
import { resultsServer } from "@periodic-eval/dashboard/server";
import { Evaluator } from "@periodic-eval/tasks";
import { afterAll, expect, it, onTestFinished } from "vitest";
import { checkpointOpener } from "../../config/open-model.ts";
import { builtMain } from "../../terminal/built-main.test-data.ts";
import { recordingTerminal } from "../../terminal/recording-terminal.test-data.ts";
import { microWorld } from "../../demo/micro-world.ts";
import { readResults } from "../../run/read-runs.ts";
import { smallTasks, writeSmallData } from "../../config/small-tasks.test-data.ts";
import { temporaryFolder } from "../../../../testing/src/temporary-folder.test-data.ts";

const root = temporaryFolder(afterAll);

/** Returns the state that the server reports for a folder. */
async function stateOf(folder: string) {
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

it("reports a feedback run as running while its process holds the lock, and as interrupted once it is killed", async () => {
  const options = ["preferences=[identity]", "metrics=[logprob]", "batch_size=1", "steps_per_batch=1"];
  const asked = [...options, "num_steps=50", `output_dir=${join(root, "live")}`];
  const args = [builtMain(), "feedback", "--backend", "wasm"];
  const child = spawn(process.execPath, [...args, ...asked], { stdio: ["ignore", "pipe", "inherit"] });
  const ended = once(child, "close");
  onTestFinished(() => void child.kill("SIGKILL"));
  let output = "";
  for await (const chunk of child.stdout) {
    output += String(chunk);
    if (output.includes("step 0")) break;
  }
  expect(output).toContain("step 0");
  // The stopped process still holds its lock.
  child.kill("SIGSTOP");
  const run = { path: "", kind: "feedback", problem: null };
  expect(await stateOf("live")).toEqual({ ...run, state: "running" });
  child.kill("SIGKILL");
  await ended;
  expect(await stateOf("live")).toEqual({ ...run, state: "interrupted" });
});

it("reports a suite as running after its first task and as finished when it ends", async () => {
  await useBackend({ backend: "wasm" });
  const results = join(root, "suite");
  const states: unknown[] = [];
  const [evaluator] = Evaluator.fromCheckpoint(microWorld(), {
    name: "base",
    tasks: await smallTasks(),
    suite: {
      schema_version: 1,
      name: "small",
      tasks: { facts: { limit: 4 }, facts_reply: { limit: 4, data: "facts" } },
    },
    data: await writeSmallData(join(root, "data")),
    results,
    openModel: checkpointOpener(recordingTerminal()),
    fs: {
      ...nodeFiles,
      async rename(from, to) {
        await nodeFiles.rename(from, to);
        if (to === join(results, "metrics.base.partial.json")) states.push(await stateOf("suite"));
      },
    },
  });
  await evaluator.run();
  const run = { path: "", kind: "results", problem: null };
  expect(states.length).toBeGreaterThan(0);
  for (const state of states) expect(state).toEqual({ ...run, state: "running" });
  expect(await stateOf("suite")).toEqual({ ...run, state: "finished" });
});
