import type { OpenCheckpoint, PeriodicEval } from "@periodic-eval/core";
import { configError } from "@periodic-eval/contracts/options";
import type { Hello, MeasureOn } from "@periodic-eval/live";

/**
 * Returns the server of a block's `measure_on`; null without the key. It is connected when the first adapter is saved: its folder has the
 * tokenizer.
 *
 * @throws PeriodicEvalError `config` for a trainer without an adapter to save, or if the block measures none of its evaluations.
 */
export function serverOf(
  { callbacks, measureOn }: PeriodicEval,
  { model: { name, adapter }, can_save: canSave }: Hello,
): MeasureOn | null {
  if (measureOn === undefined) return null;
  const { server: urls, model, evaluations } = measureOn;
  const wrong = (got: string, expected: string) => {
    const fix = "Correct measure_on, or remove it.";
    return configError({ where: "periodic_eval", path: ["measure_on"], got, expected, fix });
  };
  if (adapter === null || !canSave)
    throw wrong("a trainer that saves no adapter", "a LoRA adapter: a running server loads no other weights");
  const ids = callbacks.map(({ id }) => id);
  const unknown = evaluations.filter((id) => !ids.includes(id));
  if (unknown.length === evaluations.length)
    throw wrong(`${unknown.join(", ")}, which the block does not measure`, ids.join(", ") || "an evaluation");
  let server: Promise<{ readonly openCheckpoint: OpenCheckpoint; readonly base: string }> | null = null;
  const connect = async (path: string) => {
    const { servedName, vllm } = await import("@periodic-eval/remote");
    const { loadTokenizer } = await import("@periodic-eval/models/tokenizer");
    const base = model ?? (await servedName(urls, name));
    return { ...(await vllm({ urls, model: base, tokenizer: await loadTokenizer(path) })), base };
  };
  return {
    evaluations,
    async open(path) {
      server ??= connect(path);
      const { openCheckpoint, base } = await server;
      return openCheckpoint(base, path);
    },
  };
}
