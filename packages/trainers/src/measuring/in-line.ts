import type { EvaluableModel, OpenedModel, Progress } from "@periodic-eval/core";
import type { TrainableLM } from "@periodic-eval/tfjs";
import type { Exports } from "./exports.ts";
import type { MeasureOn } from "./measure-on.ts";

/** A model whose exported adapter a server measures while training pauses. */
export interface InLineModel {
  /** Exports the weights of this step, once, and opens them on the server. */
  at(progress: Progress): Promise<EvaluableModel>;
  dispose(): Promise<void>;
}

export function inLineModel(
  { server }: MeasureOn,
  exports: Exports,
  model: Pick<TrainableLM, "save">,
): InLineModel {
  let current: { readonly step: number; readonly opened: OpenedModel } | null = null;
  const dispose = async () => {
    const last = current;
    current = null;
    if (last === null) return;
    await last.opened.dispose?.();
    await exports.remove(last.step);
  };
  return {
    dispose,
    async at(progress) {
      if (current?.step === progress.step) return current.opened.model;
      await dispose();
      const { path, step } = await exports.write(model, progress);
      try {
        current = { step, opened: await server.openCheckpoint(server.identity.name, path) };
      } catch (error) {
        await exports.remove(step);
        throw error;
      }
      return current.opened.model;
    },
  };
}
