// For pauses.slow.test.ts: a training of 20 steps with a budget that three pauses would use up. Writes `measuring STEP` before each
// measurement, and at the end the snapshots and warnings as JSON.
import { setTimeout as sleep } from "node:timers/promises";
import { pausedSeconds } from "@periodic-eval/store/platform";
import { PeriodicCallback } from "../../callback/periodic-callback.ts";
import { everyPercent } from "../../schedule/triggers.ts";
import { toyEvaluation, toyTraining } from "../../../../testing/src/toy-training.test-data.ts";
import { withSession } from "./session.ts";

const toy = toyTraining();
let step = 0;
/** Blocks the process, as an engine does. */
function work(milliseconds: number): void {
  for (const end = performance.now() + milliseconds; performance.now() < end;);
}
const evaluation = toyEvaluation({
  async onMeasure() {
    process.stdout.write(`measuring ${step}\n`);
    // The test stops the process in one of both.
    work(20);
    await sleep(20);
  },
});
const options = toy.options([new PeriodicCallback(evaluation, { schedule: [everyPercent(10)] })], {
  maxSteps: 20,
  budget: { overheadPercent: 1, graceSeconds: 9.5 },
});
// A pause of less than 20 s is seen once the thread that beats has started.
pausedSeconds();
await sleep(3000);
await withSession(options, async (session) => {
  for (step = 1; step <= 20; step += 1) {
    work(20);
    toy.step();
    await session.stepEnd();
  }
});
process.stdout.write(`${JSON.stringify({ snapshots: await toy.store.list(), warnings: toy.warnings() })}\n`);
