import type { EvaluableModel, OpenCheckpoint } from "@periodic-eval/core";
import { configError } from "@periodic-eval/contracts/options";
import * as z from "zod";

/** A server on which a training's adapter is measured. */
export interface MeasureOn {
  /** The base model on the server: the result of `vllm` of @periodic-eval/remote. Whoever opened it disposes it. */
  readonly server: Pick<EvaluableModel, "identity"> & { readonly openCheckpoint: OpenCheckpoint };
  /**
   * True (default): training exports its adapter at each crossing of a schedule and continues; the server measures the exports.
   * Reactions to snapshots, such as early stopping, act when the snapshot is there, which is later than the measured step. False:
   * training pauses while the server measures.
   */
  readonly beside?: boolean;
  /** How long the end of training waits for the measurements that are left, in seconds; default 3600. A resumed run takes them. */
  readonly waitSeconds?: number;
}

const isFunction = (value: unknown) => typeof value === "function";
const serverText = "a served model, the awaited result of vllm()";
const secondsText = "a number of seconds above 0";

export const measureOnSchema = z.strictObject({
  server: z.custom<MeasureOn["server"]>(
    (value) => isFunction((value as MeasureOn["server"] | null)?.openCheckpoint),
    serverText,
  ),
  beside: z.boolean("true or false").optional(),
  waitSeconds: z.number(secondsText).positive(secondsText).optional(),
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
