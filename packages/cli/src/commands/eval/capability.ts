import { capabilityEvaluation, measure, type Snapshot, type SystemPrompt } from "@periodic-eval/core";
import type { Subsample } from "@periodic-eval/core/evaluations";
import { inMemory } from "@periodic-eval/core/tfjs";
import { openModel, startBackend } from "../../config/open-model.ts";
import type { Terminal } from "../../terminal/terminal.ts";

export interface CapabilityRequest {
  /** A folder in Hugging Face format, or owner/name on the Hub. */
  readonly model: string;
  readonly questions: string;
  readonly methods: readonly ("letters" | "cloze")[];
  /** Null: all questions. */
  readonly subsample: Subsample | null;
  /** System prompt of `letters`; `cloze` renders no chat. */
  readonly system: SystemPrompt;
  readonly backend?: string;
}

export interface CapabilityResult {
  readonly method: "letters" | "cloze";
  readonly engine: string;
  readonly snapshot: Snapshot;
}

/** Loads a model once and measures its capability with each method. */
export async function measureCapability(
  request: CapabilityRequest,
  terminal: Terminal,
): Promise<readonly CapabilityResult[]> {
  const { model: source, questions, methods, subsample, system, backend } = request;
  const { name: engine } = await startBackend(backend, terminal);
  const { model, tokenizer } = await openModel(source, terminal);
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
