// Measures checkpoints as another program writes them to a folder.  Run: npm run example 05 (after 01)
import { everyPercent, PeriodicCapabilityCallback, withSession } from "@periodic-eval/core";
import { openCheckpoint, useBackend } from "@periodic-eval/models";
import { watchCheckpoints } from "@periodic-eval/remote";
import { runDir, isShort, microWorld } from "./micro-world/paths.ts";

await useBackend();
const callbacks = [
  new PeriodicCapabilityCallback({
    questions: microWorld("questions.jsonl"),
    subsample: { n: isShort ? 12 : 100, seed: 42 },
    schedule: [everyPercent(50)],
  }),
];

let open = await openCheckpoint(microWorld());
await withSession(
  {
    run: runDir("watched"),
    phase: "coupling",
    maxSteps: null,
    model: () => open.model,
    callbacks,
    budget: { overheadPercent: null }, // no limit: training runs in another process and does not wait
  },
  async (session) => {
    await session.begin(); // measures the model before training
    for await (const checkpoint of watchCheckpoints(`${runDir("sft-trainer")}/checkpoints/coupling`, {
      follow: false,
    })) {
      await open.dispose();
      open = await openCheckpoint(microWorld(), checkpoint.path, { tokenizer: microWorld() });
      await session.stepEnd(checkpoint);
    }
  },
);
await open.dispose();
