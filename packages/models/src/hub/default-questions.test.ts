// The smallest `periodic_eval` block: ARC-Challenge from a hub on the loopback interface, and the embedded model.
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { buildPeriodicEval, withSession } from "@periodic-eval/core";
import { readRun } from "@periodic-eval/store";
import { inMemory } from "@periodic-eval/tfjs";
import { expect, it, onTestFinished, vi } from "vitest";
import {
  arcParquet,
  hasRealArc,
  realArcRows,
  smallArcRows,
} from "../../../data/src/rows/arc-parquet.test-data.ts";
import { datasetCommit, hostDataset, startHub } from "../../../data/src/hub/hub-server.test-data.ts";
import { useBackend } from "../backend/use-backend.ts";
import { loadCausalLM } from "../checkpoint/load-causal-lm.ts";
import { loadTokenizer } from "../tokenizer/load-tokenizer.ts";
import { temporaryFolder } from "../../../testing/src/temporary-folder.test-data.ts";

const world = fileURLToPath(new URL("../../../cli/assets/micro-world", import.meta.url));

it("`periodic_eval: { enabled: true }` measures capability on ARC-Challenge from the hub", async () => {
  const hub = await startHub();
  const folder = temporaryFolder();
  onTestFinished(() => hub.close());
  vi.stubEnv("HF_ENDPOINT", hub.url);
  vi.stubEnv("HF_HOME", folder);
  for (const name of ["HF_TOKEN", "HF_HUB_OFFLINE", "HF_HUB_CACHE", "HUGGINGFACE_HUB_CACHE"])
    vi.stubEnv(name, undefined);
  // The embedded model's tokens are short, so that it reads long questions slowly.
  const length = (row: object) => JSON.stringify(row).length;
  const real = hasRealArc ? realArcRows().toSorted((a, b) => length(a) - length(b)) : smallArcRows;
  const rows = real.slice(0, 20);
  hostDataset(hub, "allenai/ai2_arc", { "ARC-Challenge/test/0000.parquet": arcParquet(rows) });

  await useBackend({ backend: "wasm" });
  const model = await loadCausalLM(world);
  onTestFinished(() => model.dispose());
  const { callbacks, session } = await buildPeriodicEval(
    { periodic_eval: { enabled: true } },
    { phase: "em" },
  );
  const run = join(folder, "run");
  const options = { model: inMemory(model, await loadTokenizer(world)), callbacks, run, maxSteps: 1 };
  await withSession({ ...session, ...options, phase: "em", loggers: [] }, async (one) => {
    await one.begin();
    await one.stepEnd();
  });

  const { snapshots } = (await readRun(run)).phases[0]!;
  expect(snapshots.map(({ id, step, status }) => [id, step, status])).toEqual([
    ["capability", 0, "complete"],
    ["capability", 1, "complete"],
  ]);
  const { metrics, provenance } = snapshots[0]!;
  expect(metrics["accuracy"]).toMatchObject({ n: rows.length, value: expect.any(Number) });
  expect(provenance.evaluation).toMatchObject({
    hub: "allenai/ai2_arc",
    config: "ARC-Challenge",
    split: "test",
    commit: datasetCommit,
  });
  // Commit, listing, and the file's redirect, size and content: nothing is downloaded twice.
  expect(hub.requests.filter((request) => request.startsWith("GET /api"))).toHaveLength(2);
});
