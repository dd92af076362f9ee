import { readRun } from "@periodic-eval/store";
import { type TrainingPoint } from "@periodic-eval/contracts";
import { expect, it } from "vitest";
import { temporaryFolder } from "../../../testing/src/temporary-folder.test-data.ts";
import { runData } from "../run/run-data.ts";
import { writeSampleRun } from "../run/sample-run.test-data.ts";
import { runChart } from "./run-chart.ts";
import { trainingCurves } from "./training-curves.ts";

async function runWith(training: readonly (readonly TrainingPoint[])[]) {
  const runDir = temporaryFolder();
  await writeSampleRun(runDir);
  const run = await readRun(runDir);
  return { ...run, phases: run.phases.map((phase, at) => ({ ...phase, training: training[at] ?? [] })) };
}
const point = (runStep: number, metrics: TrainingPoint["metrics"]): TrainingPoint => ({
  step: runStep % 60,
  runStep,
  metrics,
});

it("returns no curves if nothing was logged", async () => {
  expect(trainingCurves(await runWith([]))).toEqual([]);
});

it("orders the usual metrics first, joins phases, and leaves out unknown and infinite values", async () => {
  const run = await runWith([
    [point(1, { grad_norm: 2, loss: 3 }), point(2, { loss: null, learning_rate: 1e-4 })],
    [point(61, { loss: Infinity, eval_loss: 2.5 }), point(62, { loss: 1 })],
  ]);
  const curves = trainingCurves(run);
  expect(curves.map(({ name, unit }) => `${name} ${unit}`)).toEqual([
    "Training loss nats",
    "Validation loss nats",
    "Learning rate ",
    "Grad norm ",
  ]);
  expect(curves[0]!.points).toEqual([
    { phase: 0, step: 1, runStep: 1, value: 3 },
    { phase: 1, step: 2, runStep: 62, value: 1 },
  ]);
});

it("draws a constant with few digits on its axis", async () => {
  const run = await runWith([[point(1, { loss: 2.7 }), point(2, { loss: 2.7 })]]);
  const data = runData(run);
  const { markup } = runChart(
    data,
    data.curves.find(({ key }) => key === "training:loss")!,
    "small",
  );
  expect(markup).not.toMatch(/\d\.\d{5}<\/text>/);
});
