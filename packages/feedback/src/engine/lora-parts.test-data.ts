import { loadCausalLM, withLora } from "@periodic-eval/models";
import { loadTokenizer } from "@periodic-eval/models/tokenizer";
import type { LocalEngineOptions } from "./local-engine.ts";

/** Returns the options of an engine that trains adapters of rank 8 on the model in a folder, as the command line does. */
export const loraParts = (folder: string, name = folder): LocalEngineOptions => ({
  describe: { model: name },
  async openModel({ seed }) {
    const base = await loadCausalLM(folder);
    const model = withLora(base, { rank: 8, alpha: 16, seed: String(seed) });
    const dispose = () => {
      model.dispose();
      base.dispose();
    };
    return { model, tokenizer: await loadTokenizer(folder), dispose };
  },
});
