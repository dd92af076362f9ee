import type { EvaluableModel } from "@periodic-eval/core";
import { inMemory, type CausalLM } from "@periodic-eval/core/tfjs";
import { outlineCausalLM } from "@periodic-eval/models";
import { loadTokenizer } from "@periodic-eval/models/tokenizer";
import { loadingLine } from "./loading-line.ts";
import type { Terminal } from "./terminal.ts";

/** A model as its configuration and its tokenizer tell it: data can be read for it, and prompts rendered; its weights are not read. */
export async function outlineModel(source: string, terminal: Terminal): Promise<EvaluableModel> {
  const { onDownload, close } = loadingLine(terminal);
  try {
    const tokenizer = await loadTokenizer(source, { onDownload });
    return inMemory((await outlineCausalLM(source, { onDownload })) as unknown as CausalLM, tokenizer);
  } finally {
    close();
  }
}
