import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { resultsServer } from "@periodic-eval/dashboard/server";
import { afterAll, beforeAll, expect, it, onTestFinished } from "vitest";

let root = "";
beforeAll(async () => void (root = await mkdtemp(join(tmpdir(), "serve-live-"))));
afterAll(() => rm(root, { recursive: true }));

it("says that a run of feedback is running while its process holds it, and dead once that was killed", async () => {
  const main = fileURLToPath(new URL("main.ts", import.meta.url));
  const options = ["preferences=[identity]", "metrics=quick", "batch_size=1", "steps_per_batch=1"];
  const asked = [...options, "num_steps=50", `output_dir=${join(root, "live")}`];
  const args = ["--import", "tsx", "-C", "@periodic-eval/source", main, "feedback", "--backend", "wasm"];
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
  const server = resultsServer({ root });
  const told = async () => {
    const reply = await server.request("/v1/eval", { headers: { Accept: "application/json" } });
    const { runs } = (await reply.json()) as { readonly runs: readonly Record<string, unknown>[] };
    return runs.map(({ results_dir: path, kind, state, problem }) => ({ path, kind, state, problem }));
  };
  const run = { path: "live", kind: "feedback", problem: null };
  expect(await told()).toEqual([{ ...run, state: "running" }]);
  child.kill("SIGKILL");
  await ended;
  expect(await told()).toEqual([{ ...run, state: "dead" }]);
});
