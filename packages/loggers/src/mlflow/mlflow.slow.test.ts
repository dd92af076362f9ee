import { execFileSync, spawn } from "node:child_process";
import { mkdtemp, rm } from "node:fs/promises";
import { createServer, type AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it, vi } from "vitest";
import { expectedAccuracies, expectedLosses, logKilledRun } from "../logged-run.test-data.ts";
import { temporaryFolder } from "../../../testing/src/temporary-folder.test-data.ts";
import { python, pythonHas } from "../python.test-data.ts";
import { killable, type KillableDestination } from "../killable-destination.test-data.ts";
import { outboxLogger } from "../outbox/outbox-logger.ts";
import { wallClock } from "../options.ts";
import { mlflowDestination } from "./destination.ts";

const needs = "PERIODIC_EVAL_PEERS_PYTHON must be a Python with mlflow";
describe.skipIf(!pythonHas("mlflow"))(`a real mlflow server (${needs})`, () => {
  let folder: string;
  let trackingUri: string;
  let stop: () => Promise<void>;
  beforeAll(async () => {
    folder = await mkdtemp(join(tmpdir(), "periodic-eval-mlflow-"));
    const port = await freePort();
    trackingUri = `http://127.0.0.1:${port}`;
    const store = `sqlite:///${join(folder, "mlflow.db")}`;
    const args = ["-m", "mlflow", "server", "--host", "127.0.0.1", "--port", String(port), "--workers", "1"];
    const child = spawn(python, [...args, "--backend-store-uri", store, "--default-artifact-root", folder], {
      stdio: "ignore",
      cwd: folder,
      // It leaves a lock in the folder of temporary files.
      env: { ...process.env, TMPDIR: folder },
      // Killing its process group also ends its workers.
      detached: true,
    });
    const ended = new Promise<void>((resolve) => child.on("exit", () => resolve()));
    stop = () => {
      process.kill(-child.pid!, "SIGKILL");
      return ended;
    };
    await vi.waitFor(async () => expect((await fetch(`${trackingUri}/health`)).ok).toBe(true), {
      timeout: startMilliseconds,
      interval: 200,
    });
  }, startMilliseconds + 10_000);
  afterAll(async () => {
    await stop();
    await rm(folder, { recursive: true });
  });

  it("receives each value of a killed run once, with late grading at its own step", async () => {
    const runDir = temporaryFolder();
    const draws = vi.spyOn(Math, "random");
    const processes: KillableDestination[] = [];
    const target = {
      address: trackingUri,
      authorization: null,
      secrets: [],
      experiment: "größe & co",
      runName: "first",
      now: wallClock,
    };
    await logKilledRun(
      () => {
        processes.push(killable({ ...mlflowDestination(target), pauseSeconds: 0 }));
        return outboxLogger(processes.at(-1)!, { runDir, closeSeconds: 200 });
      },
      async () => {
        // Kill after the first points were sent.
        await vi.waitFor(() => expect(processes.at(-1)!.sent).toBeGreaterThan(0), 200_000);
        await processes.at(-1)!.kill();
      },
    );
    // Dropout draws from Math.random too.
    expect(draws).not.toHaveBeenCalled();
    const { losses, accuracies, runs, tags } = readBack(trackingUri, "größe & co");
    expect(losses.map(([step, value]) => [step, Number(value)])).toEqual(expectedLosses);
    const { coupling, em } = expectedAccuracies;
    const sorted = [...coupling, ...em].toSorted(([a], [b]) => a - b);
    expect(accuracies).toEqual(sorted);
    expect(runs).toEqual([["first", "FINISHED"]]);
    expect(tags).toMatchObject({ "phase.coupling": "from run step 0", "phase.em": "from run step 10" });
  });
});

/** Importing the server takes half a minute on a busy machine, and it then creates its tables. */
const startMilliseconds = 300_000;

interface ReadBack {
  readonly losses: readonly (readonly [number, string])[];
  readonly accuracies: readonly (readonly [number, number])[];
  readonly runs: readonly unknown[];
  readonly tags: Readonly<Record<string, string>>;
}

/** Reads the run with MLflow's Python client. */
function readBack(trackingUri: string, experiment: string): ReadBack {
  const script = `
import json, sys
from mlflow import MlflowClient
client = MlflowClient(sys.argv[1])
runs = client.search_runs([client.get_experiment_by_name(sys.argv[2]).experiment_id])
history = lambda key: sorted((m.step, m.value) for m in client.get_metric_history(runs[0].info.run_id, key))
words = lambda value: "NaN" if value != value else str(value)
print(json.dumps({
    "losses": [(step, words(value)) for step, value in history("train/loss")],
    "accuracies": history("periodic_eval/arc_c_accuracy"),
    "runs": [(run.info.run_name, run.info.status) for run in runs],
    "tags": runs[0].data.tags,
}))`;
  const out = execFileSync(python, ["-c", script, trackingUri, experiment], {
    encoding: "utf8",
    stdio: "pipe",
  });
  return JSON.parse(out) as ReadBack;
}

async function freePort(): Promise<number> {
  const server = createServer();
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const { port } = server.address() as AddressInfo;
  await new Promise((resolve) => server.close(resolve));
  return port;
}
