import { fingerprintWeights, inMemory } from "@periodic-eval/core/tfjs";
import { loadLora, useBackend } from "@periodic-eval/models";
import { loadTokenizer } from "@periodic-eval/models/tokenizer";
import type { OpenModel } from "@periodic-eval/tasks";
import { openModel } from "../../config/open-model.ts";
import type { Terminal } from "../../terminal/terminal.ts";

/** Opens models of ours for an `Evaluator`, on the engine of that name, by default the fastest. */
export const checkpointOpener =
  (backend: string | undefined, terminal: Terminal): OpenModel =>
  async ({ folder, adapter, tokenizer: words }) => {
    await useBackend(backend === undefined ? {} : { backend });
    const own = words === null ? undefined : await loadTokenizer(words);
    const { model: base, tokenizer } = await openModel(folder, terminal, own);
    try {
      const model = adapter === null ? base : await loadLora(base, adapter);
      return {
        model: inMemory(model, tokenizer),
        fingerprint: () => fingerprintWeights(model.weights(), { method: "exact" }),
        baseFingerprint: () => fingerprintWeights(base.weights(), { method: "exact" }),
        dispose() {
          if (model !== base) model.dispose();
          base.dispose();
        },
      };
    } catch (error) {
      base.dispose();
      throw error;
    }
  };
