import { PeriodicEvalError, type EvaluableModel } from "@periodic-eval/core";
import { inMemory } from "@periodic-eval/core/tfjs";
import { outlineCausalLM } from "@periodic-eval/models";
import { loadTokenizer } from "@periodic-eval/models/tokenizer";
import { loadingLine } from "../terminal/loading-line.ts";
import type { Terminal } from "../terminal/terminal.ts";

/** A model as its configuration and its tokenizer tell it: data can be read for it, and prompts rendered; its weights are not read. */
export async function outlineModel(source: string, terminal: Terminal): Promise<EvaluableModel> {
  const { onDownload, close } = loadingLine(terminal);
  try {
    const tokenizer = await loadTokenizer(source, { onDownload });
    const { name, vocabSize, contextLength } = await outlineCausalLM(source, { onDownload });
    const logits = () => {
      throw new PeriodicEvalError({
        code: "model",
        where: name,
        got: "a question to the model, of which the configuration alone was read",
        expected: "prompts and data, nothing that takes weights",
        fix: "Load the model: `periodic-eval eval` does.",
      });
    };
    return inMemory({ name, vocabSize, contextLength, logits }, tokenizer);
  } finally {
    close();
  }
}
