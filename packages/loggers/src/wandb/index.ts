import type { Logger } from "@periodic-eval/core";
import { configError, parseOptions } from "@periodic-eval/contracts/options";
import * as z from "zod";
import { wallClock } from "../options.ts";
import { outboxFields, outboxLogger, type OutboxOptions } from "../outbox/outbox-logger.ts";
import { wandbDestination } from "./destination.ts";

export interface WandbOptions extends OutboxOptions {
  /** Default: `WANDB_PROJECT`. */
  readonly project?: string;
  /** User or team. Default: `WANDB_ENTITY`, otherwise the API key's default entity. */
  readonly entity?: string;
  /** Name of the run. Default: `WANDB_NAME`, otherwise its id. */
  readonly runName?: string;
  /** Configuration that W&B shows for the run. */
  readonly config?: Readonly<Record<string, unknown>>;
  /** URL of the server. Default: `WANDB_BASE_URL`, otherwise `https://api.wandb.ai`. */
  readonly baseUrl?: string;
}

const where = "wandbLogger options";

const schema = z.strictObject({
  ...outboxFields,
  project: z.string("the name of a W&B project").optional(),
  entity: z.string("a string").optional(),
  runName: z.string("a string").optional(),
  config: z.record(z.string(), z.unknown(), "an object").optional(),
  baseUrl: z.string("a URL").optional(),
} satisfies Record<keyof WandbOptions, z.ZodType>);

/**
 * Sends scalars to Weights & Biases under the names of `snapshotScalars` and `trainScalars`: `periodic_eval/arc_c_accuracy`,
 * `periodic_align/aligned`, `periodic_leak/leakage_<persona>`, each with `…/train_pct`. Each line also holds `run_step` and
 * `phase`. Choose `run_step` as the x axis of charts: W&B's own step counts lines, which include late grading and later phases.
 * The run's id is kept in `run_dir/loggers/wandb.jsonl`, so a resumed run continues the same W&B run. The API key comes from
 * `WANDB_API_KEY` or `.netrc`.
 *
 * @throws PeriodicEvalError `config` for a wrong option, without a project, and for a `WANDB_MODE` other than `online`.
 */
export function wandbLogger(options: WandbOptions): Logger {
  parseOptions(where, schema, options);
  const { env } = process;
  const project = options.project ?? env["WANDB_PROJECT"];
  if (project === undefined)
    throw configError({
      where,
      path: ["project"],
      got: "nothing",
      expected: "the name of a W&B project",
      fix: "Set `project` or WANDB_PROJECT.",
    });
  const mode = env["WANDB_MODE"] ?? "online";
  if (mode !== "online")
    throw configError({
      where: "wandbLogger WANDB_MODE",
      value: mode,
      expected: '"online", the only mode of this logger',
      fix: "Remove the logger or unset WANDB_MODE. While the server cannot be reached, data is kept in the run's folder.",
    });
  const destination = wandbDestination({
    project,
    entity: options.entity ?? env["WANDB_ENTITY"] ?? null,
    name: options.runName ?? env["WANDB_NAME"] ?? null,
    config: options.config ?? {},
    baseUrl: (options.baseUrl ?? env["WANDB_BASE_URL"] ?? "https://api.wandb.ai").replace(/\/+$/, ""),
    now: options.now ?? wallClock,
  });
  return outboxLogger(destination, options);
}
