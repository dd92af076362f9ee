import {
  capabilityEvaluation,
  measure,
  type Snapshot,
  type Subsample,
  type SystemPrompt,
} from "@periodic-eval/core";
import { inMemory } from "@periodic-eval/core/tfjs";
import { loadCausalLM, useBackend } from "@periodic-eval/models";
import { loadTokenizer } from "@periodic-eval/models/tokenizer";

export interface CapabilityRequest {
  readonly model: string;
  readonly questions: string;
  readonly methods: readonly ("letters" | "cloze")[];
  /** Null asks all. */
  readonly subsample: Subsample | null;
  /** For letters; cloze renders no chat. */
  readonly system: SystemPrompt;
  readonly backend?: string;
}

export interface CapabilityResult {
  readonly method: "letters" | "cloze";
  readonly engine: string;
  readonly snapshot: Snapshot;
}

/** Loads a model once and measures it by each method. */
export async function measureCapability(request: CapabilityRequest): Promise<readonly CapabilityResult[]> {
  const { model: folder, questions, methods, subsample, system, backend } = request;
  const { name: engine } = await useBackend(backend === undefined ? {} : { backend });
  const tokenizer = await loadTokenizer(folder);
  const model = await loadCausalLM(folder);
  try {
    const results: CapabilityResult[] = [];
    for (const method of methods) {
      const evaluation = capabilityEvaluation({
        questions,
        method,
        subsample,
        ...(method === "letters" && { system }),
      });
      const { snapshot } = await measure(evaluation, inMemory(model, tokenizer));
      results.push({ method, engine, snapshot });
    }
    return results;
  } finally {
    model.dispose();
  }
}
