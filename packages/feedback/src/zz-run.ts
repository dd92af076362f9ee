import { loadCausalLM, useBackend, withLora } from "@periodic-eval/models";
import { loadTokenizer } from "@periodic-eval/models/tokenizer";
import { loadHarnessConfig, localEngine, runHarness } from "./index.ts";
await useBackend({ backend: process.env["BACKEND"] ?? "wasm" });
const folder = "/tmp/h9/packages/cli/assets/micro-world";
const tokenizer = await loadTokenizer(folder);
const engine = localEngine({
  describe: { model: "micro-world", engine: "tfjs-wasm" },
  async openModel({ seed }) {
    const base = await loadCausalLM(folder);
    const model = withLora(base, { rank: 8, alpha: 16, seed: String(seed) });
    return {
      model,
      tokenizer,
      dispose() {
        model.dispose();
        base.dispose();
      },
    };
  },
});
const config = await loadHarnessConfig({ configName: "micro-world", overrides: process.argv.slice(2) });
const t0 = performance.now();
let t = t0;
await runHarness(config, {
  engine,
  onStep(name, line, s) {
    const now = performance.now();
    const e = line?.eval;
    console.log(
      name,
      line?.step ?? "base",
      ((now - t) / 1000).toFixed(1) + "s",
      "delta",
      s.logprob_margin_delta?.toFixed(2),
      "p",
      s.logprob_margin_p?.toFixed(4),
      "comp",
      s.baseline_compliance?.toFixed(2),
      "→",
      s.final_compliance?.toFixed(2),
      "seen",
      e?.preference_compliance?.seen?.toFixed(2),
      "gen",
      e?.general?.general,
      "cap",
      s.capability_ratio,
      s.verdict,
      e?.collapse ? JSON.stringify({ ...e.collapse }) : "",
      line?.sdpo_metrics["loss"],
    );
    t = now;
  },
});
console.log(((performance.now() - t0) / 1000).toFixed(0), "s");
