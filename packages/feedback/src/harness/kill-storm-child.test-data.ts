// For kill-storm.slow.test.ts: prints "begins", then completes a run of the harness with the fake engine.
import { loadHarnessConfig } from "../config/load-config.ts";
import { fakeEngine } from "../engine/fake-engine.test-data.ts";
import { runHarness } from "./run-harness.ts";

const [output, preference] = process.argv.slice(2);
const config = await loadHarnessConfig({
  overrides: [
    `output_dir=${output}`,
    `preferences=[${JSON.stringify(preference)},concise]`,
    "metrics=[logprob,compliance,collapse]",
    "num_steps=6",
    "batch_size=2",
    "collapse_steps=[1,5]",
  ],
});
process.stdout.write("begins\n");
await runHarness(config, { engine: fakeEngine() });
