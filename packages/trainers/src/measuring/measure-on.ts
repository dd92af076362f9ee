import * as z from "zod";
import { configError } from "@periodic-eval/contracts/options";
import type { EvaluableModel, OpenCheckpoint, OpenedModel, Progress } from "@periodic-eval/core";
import { writeWholeFolder } from "@periodic-eval/store";
import { rm } from "@periodic-eval/store/browser";
import { join, resolve } from "@periodic-eval/store/platform";
import type { TrainableLM } from "@periodic-eval/tfjs";

/** A server on which a training's adapter is measured. Training pauses meanwhile. */
export interface MeasureOn {
  /** The base model on the server: the result of `vllm` of @periodic-eval/remote. Whoever opened it disposes it. */
  readonly server: Pick<EvaluableModel, "identity"> & { readonly openCheckpoint: OpenCheckpoint };
}

export const measureOnSchema = z.strictObject({
  server: z.custom<MeasureOn["server"]>(
    (value) => typeof (value as MeasureOn["server"] | null)?.openCheckpoint === "function",
    "a served model, the awaited result of vllm()",
  ),
} satisfies Record<keyof MeasureOn, z.ZodType>);

/** @throws PeriodicEvalError `config` for a model without an adapter: a running server cannot load other weights. */
export function checkMeasureOn(
  where: string,
  { model, measureOn }: { readonly model: { readonly base?: unknown }; readonly measureOn?: MeasureOn },
): void {
  if (measureOn === undefined || model.base !== undefined) return;
  throw configError({
    where,
    path: ["measureOn"],
    got: "a model without an adapter",
    expected: "a LoRA adapter: a running server cannot load other weights",
    fix: "Train withLora(model) of @periodic-eval/models, or measure in this process.",
  });
}

interface ServedOptions {
  readonly runDir: string;
  readonly phase: string;
  readonly model: Pick<TrainableLM, "save">;
}

/** The adapter in training as a server measures it. */
interface ServedAdapter {
  /** Exports the weights of this step, once, and opens them on the server. */
  at(progress: Progress): Promise<EvaluableModel>;
  /** Closes the last export, and removes it. */
  dispose(): Promise<void>;
}

/** Exports each measured step to `<runDir>/exports/<phase>/step_<N>`, where the server reads it. */
export function servedAdapter({ server }: MeasureOn, { runDir, phase, model }: ServedOptions): ServedAdapter {
  // A server may have another working directory.
  const folder = resolve(runDir, join("exports", phase));
  let current: { readonly step: number; readonly opened: OpenedModel } | null = null;
  const dispose = async () => {
    await current?.opened.dispose?.();
    current = null;
    await rm(folder, { recursive: true, force: true });
  };
  return {
    dispose,
    async at({ step }) {
      if (current?.step === step) return current.opened.model;
      await dispose();
      const path = join(folder, `step_${step}`);
      await writeWholeFolder(path, (draft) => model.save(draft));
      current = { step, opened: await server.openCheckpoint(server.identity.name, path) };
      return current.opened.model;
    },
  };
}
