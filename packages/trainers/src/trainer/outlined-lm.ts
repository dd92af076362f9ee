import type { TrainableLM } from "@periodic-eval/core/tfjs";

/** A model as far as the checks before the first step look at it: its weights need not be there. */
export type OutlinedLM = Pick<
  TrainableLM,
  "name" | "vocabSize" | "contextLength" | "fixedLength" | "takesDocuments" | "enterActivationCheckpointing"
> & { readonly base?: OutlinedLM };
