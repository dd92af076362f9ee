import { spawn } from "node:child_process";
import { once } from "node:events";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { expect, it } from "vitest";
import { checkClient } from "@periodic-eval/live";
import { openCheckpoint, useBackend } from "@periodic-eval/models";
import { readRun, undisturbed } from "@periodic-eval/store";
import { temporaryFolder } from "../../../../testing/src/temporary-folder.test-data.ts";
import { needsPython, python, pythonHas } from "../../../../models/src/testing/python.test-data.ts";
import { scriptedServer } from "../../../../remote/src/engine/scripted-server.test-data.ts";
import { microWorld } from "../../demo/micro-world.ts";
import { writeCheckpoint } from "../watch/written-checkpoints.test-data.ts";

const program = join(import.meta.dirname, "../../main.ts");
const host = [process.execPath, "--import", "tsx", "-C", "@periodic-eval/source", program, "live"];
const hasTorch = pythonHas("torch", "transformers", "peft");
if (!hasTorch) console.warn(`live.slow.test.ts ${needsPython("torch, transformers and peft")}`);

it.skipIf(!hasTorch)("the Python client passes the conformance suite", async () => {
  const client = join(import.meta.dirname, "../../../../python/tests/check_client.py");
  const checks = await checkClient(`${python} ${client}`);
  expect(checks.filter(({ problem }) => problem !== null)).toEqual([]);
  expect(checks.length).toBeGreaterThan(20);
});

it.skipIf(process.platform === "win32")(
  "ends when its trainer is killed while another process holds its input open",
  async () => {
    const [node, ...args] = host.map((word) => `'${word}'`);
    const script = `sleep 60 | ${node} ${args.join(" ")} & echo $!; wait`;
    const trainer = spawn("sh", ["-c", script], { stdio: ["ignore", "pipe", "pipe"] });
    const lines = createInterface(trainer.stdout)[Symbol.asyncIterator]();
    const said = createInterface(trainer.stderr)[Symbol.asyncIterator]();
    const pid = Number((await lines.next()).value);
    // The host runs, and has seen its trainer.
    expect((await lines.next()).value).toContain("ping");
    trainer.kill("SIGKILL");
    const killed = performance.now();
    await expect.poll(() => isRunning(pid), { timeout: 30_000 }).toBe(false);
    expect(performance.now() - killed).toBeLessThan(30_000);
    expect((await said.next()).value).toContain("no hello: the trainer's process has ended");
  },
);

function isRunning(pid: number): boolean {
  try {
    return process.kill(pid, 0);
  } catch {
    return false;
  }
}

it.skipIf(!hasTorch)("measures chosen evaluations on a server, with the adapter of the step", async () => {
  await useBackend({ backend: "wasm" });
  const root = temporaryFolder();
  const runDir = join(root, "run");
  const base = await openCheckpoint(microWorld());
  const adapter = await writeCheckpoint(join(root, "other"), { kind: "adapter", step: 1, maxSteps: 2 });
  const adapted = await openCheckpoint(microWorld(), adapter);
  const {
    url,
    received,
    adapters: loaded,
  } = await scriptedServer({
    model: base.model,
    root: microWorld(),
    contextLimit: base.model.contextLength! + 2,
    adapterModel: () => adapted.model,
  });
  const block = {
    questions: microWorld("questions.jsonl"),
    subsample_n: 4,
    eval_every_percent: 50,
    leakage: true,
    leakage_source: null,
    leakage_every_percent: 50,
    leakage_questions: microWorld("leakage.json"),
    leakage_marker_token: "bread",
    leakage_num_completions: 1,
    leakage_max_tokens: 6,
    personas: { baker: "You are a baker.", none: null },
    budget: { overhead_percent: null },
    measure_on: { server: url },
  };
  const script = join(import.meta.dirname, "train.test-data.py");
  const trainer = spawn(python, [script, runDir, JSON.stringify(block), "2"], {
    stdio: ["ignore", "inherit", "inherit"],
    env: { ...process.env, HF_HUB_OFFLINE: "1", PERIODIC_EVAL_HOST: host.join(" ") },
  });
  expect(await once(trainer, "exit")).toEqual([0, null]);
  const { snapshots } = (await readRun(runDir)).phases[0]!;
  expect(snapshots.map(({ id, step, status, served = false }) => [id, step, status, served])).toEqual(
    [0, 1, 2].flatMap((step) => [
      ["capability", step, "complete", false],
      ["leakage", step, "complete", true],
    ]),
  );
  expect(undisturbed(snapshots)!.answer).toBe("yes");
  const folders = received.flatMap(({ path, body }) =>
    path === "/v1/load_lora_adapter" ? [String(body["lora_path"])] : [],
  );
  const saved = ["step-0", "step-1", "step-2"].map((step) => join(runDir, "live", step));
  expect(folders.filter((folder) => folder.includes("/step-"))).toEqual(saved);
  expect(loaded()).toEqual([]);
  for (const model of [adapted, base]) await model.dispose();
});
