import { fingerprintWeights, inMemory } from "@periodic-eval/core/tfjs";
import { loadLora } from "@periodic-eval/models";
import { loadTokenizer } from "@periodic-eval/models/tokenizer";
import type { OpenModel } from "@periodic-eval/tasks";
import { openModel, startBackend } from "../../config/open-model.ts";
import type { Terminal } from "../../terminal/terminal.ts";

/** Returns a function that opens checkpoints for an `Evaluator` on the named backend, by default the fastest one. */
export const checkpointOpener =
  (backend: string | undefined, terminal: Terminal): OpenModel =>
  async ({ folder, adapter, tokenizer: tokenizerSource }) => {
    await startBackend(backend, terminal);
    const otherTokenizer = tokenizerSource === null ? undefined : await loadTokenizer(tokenizerSource);
    const { model: base, tokenizer } = await openModel(folder, terminal, otherTokenizer);
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
