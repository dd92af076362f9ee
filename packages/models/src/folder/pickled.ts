import type { PeriodicEvalError } from "@periodic-eval/core";
import { failure } from "./failure.ts";

/** Names of weights that Python's pickle wrote. */
const pickles =
  /^(pytorch_model|adapter_model|consolidated|model|checkpoint)[\w.-]*\.(bin|bin\.index\.json|pth|pt|ckpt|pkl)$/;

/** Why a model whose only weights are pickled is not read; null where there are none of these either. */
export function pickled(where: string, names: readonly string[]): PeriodicEvalError | null {
  const found = names.find((name) => pickles.test(name));
  if (found === undefined) return null;
  return failure(
    where,
    `only ${found}, a pickled checkpoint`,
    "weights in safetensors, because unpickling a file runs the code that it holds",
    'Convert it where you trust it: load it with transformers, or an adapter with PEFT, and call save_pretrained("FOLDER"), which writes safetensors.',
  );
}
