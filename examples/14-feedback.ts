// Trains a model on a user's feedback and measures, after each update, what it learns and what it loses.  Run: npm run example 14
import { formatValue } from "@periodic-eval/core/statistics";
import { writeFeedback } from "@periodic-eval/dashboard";
import { loadHarnessConfig, localEngine, runHarness } from "@periodic-eval/feedback";
import { loadCausalLM, useBackend, withLora } from "@periodic-eval/models";
import { loadTokenizer } from "@periodic-eval/models/tokenizer";
import { isShort, runDir, talkativeMicroWorld as folder } from "./micro-world/paths.ts";

const { name } = await useBackend();
const output = runDir("feedback");
const config = await loadHarnessConfig({
  configName: "micro-world", // preferences and probes in the embedded model's words
  overrides: [
    "preferences=[concise]",
    `output_dir=${output}`,
    ...(isShort ? ["num_steps=2", "steps_per_batch=1", "metrics=[logprob]"] : []),
  ],
});

// Instead of a model in this process, a service can train: httpEngine({ serviceUrl: "http://127.0.0.1:8080" }).
const engine = localEngine({
  describe: { engine: name, model: "micro-world-talkative" },
  async openModel({ seed }) {
    const base = await loadCausalLM(folder);
    const model = withLora(base, { rank: 8, alpha: 16, seed: String(seed) });
    const dispose = () => [model, base].forEach((one) => one.dispose());
    return { model, tokenizer: await loadTokenizer(folder), dispose };
  },
});

const { preferences } = await runHarness(config, {
  engine,
  onStep(preference, line, { final_compliance: now, baseline_compliance: before }) {
    const when = line === null ? "before training" : `after step ${line.step}`;
    console.log(`${preference}, ${when}: held-out compliance ${formatValue(now ?? before, "share")}`);
  },
});
const { page } = await writeFeedback(output);
console.log(`Verdict: ${preferences["concise"]?.verdict}. Open the charts in a browser: ${page}`);
