import { createRequire } from "node:module";
import { PeriodicEvalError, type Logger } from "@periodic-eval/core";
import { checkKeys } from "@periodic-eval/core/internal";
import { outboxLogger, outboxOptionNames, type OutboxOptions } from "../outbox/outbox-logger.ts";
import { wandbDestination } from "./destination.ts";
import { checkSdk } from "./sdk-version.ts";

export interface WandbOptions extends OutboxOptions {
  /** Default `WANDB_PROJECT`. */
  readonly project?: string;
  /** User or team; default `WANDB_ENTITY`, else the key's own. */
  readonly entity?: string;
  /** What the run is called; default `WANDB_NAME`, else its id. */
  readonly runName?: string;
  /** What W&B shows as the run's configuration. */
  readonly config?: Readonly<Record<string, unknown>>;
  /** Default `WANDB_BASE_URL`, else W&B's own server. */
  readonly baseUrl?: string;
}

/**
 * Sends scalars to Weights & Biases by its SDK (optional peer `@wandb/sdk` 0.5.1), under the names of `snapshotScalars` and
 * `trainScalars`: `periodic_eval/arc_c_accuracy`, `periodic_align/aligned`, `periodic_leak/leakage_<persona>`, each with
 * `…/train_pct`. Each line holds `run_step` and `phase` too. Choose `run_step` as the charts' x axis: W&B's own step counts
 * lines, so that late grading and second phases are there as well. The run's id is kept in
 * `run_dir/loggers/wandb.jsonl`: a resumed run goes on in the same run. The key is read from `WANDB_API_KEY` or `.netrc`.
 *
 * @throws PeriodicEvalError `config` without a project or that version of the SDK, and for `WANDB_MODE=offline`: in that mode the SDK
 * throws away what it is given.
 */
export function wandbLogger(options: WandbOptions): Logger {
  checkKeys("wandbLogger", options, [
    "project",
    "entity",
    "runName",
    "config",
    "baseUrl",
    ...outboxOptionNames,
  ]);
  const { env } = process;
  const project = options.project ?? env["WANDB_PROJECT"];
  if (project === undefined)
    throw wrong("project", "nothing", "the name of a W&B project", "Set `project` or WANDB_PROJECT.");
  const mode = env["WANDB_MODE"] ?? "online";
  if (mode !== "online")
    throw wrong(
      "WANDB_MODE",
      `"${mode}"`,
      '"online": what the SDK is given in another mode is lost',
      "Leave the logger out, or unset WANDB_MODE: what a server out of reach does not take is kept in the run's folder.",
    );
  checkSdk(createRequire(import.meta.url));
  const destination = wandbDestination({
    project,
    entity: options.entity ?? env["WANDB_ENTITY"] ?? null,
    name: options.runName ?? env["WANDB_NAME"] ?? null,
    config: options.config ?? {},
    baseUrl: (options.baseUrl ?? env["WANDB_BASE_URL"] ?? "https://api.wandb.ai").replace(/\/+$/, ""),
  });
  return outboxLogger(destination, options);
}

function wrong(what: string, got: string, expected: string, fix: string): PeriodicEvalError {
  return new PeriodicEvalError({ code: "config", where: `wandbLogger ${what}`, got, expected, fix });
}
