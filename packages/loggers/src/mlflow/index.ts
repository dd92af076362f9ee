import { PeriodicEvalError, type Logger } from "@periodic-eval/core";
import { checkKeys } from "@periodic-eval/core/internal";
import { outboxLogger, outboxOptionNames, type OutboxOptions } from "../outbox/outbox-logger.ts";
import { wallClock } from "../wall-clock.ts";
import { mlflowDestination } from "./destination.ts";

export interface MlflowOptions extends OutboxOptions {
  /** Address of the server; default `MLFLOW_TRACKING_URI`. */
  readonly trackingUri?: string;
  /** Made where there is none; default `MLFLOW_EXPERIMENT_NAME`, else `Default`. */
  readonly experiment?: string;
  /** What the run is called; MLflow thinks of a name where it is left out. */
  readonly runName?: string;
}

/**
 * Sends scalars to an MLflow server over its REST API, `run_step` as their step, under the names of `snapshotScalars` and
 * `trainScalars`; what MLflow refuses in a name is spelt out (`metricName`). Each phase is a tag, `phase.<name>`, with the
 * run step at which it was first logged. The run's id is kept in `run_dir/loggers/mlflow.jsonl`: a resumed run goes on in
 * the same run. Credentials are read from `MLFLOW_TRACKING_TOKEN`, from `MLFLOW_TRACKING_USERNAME` and
 * `MLFLOW_TRACKING_PASSWORD`, or from the address, and are in no message.
 *
 * @throws PeriodicEvalError `config` where the address is none.
 */
export function mlflowLogger(options: MlflowOptions): Logger {
  checkKeys("mlflowLogger", options, ["trackingUri", "experiment", "runName", ...outboxOptionNames]);
  const { trackingUri = process.env["MLFLOW_TRACKING_URI"], now = wallClock } = options;
  const experiment = options.experiment ?? process.env["MLFLOW_EXPERIMENT_NAME"] ?? "Default";
  const place = { ...parseAddress(trackingUri), experiment, runName: options.runName, now };
  return outboxLogger(mlflowDestination(place), options);
}

/** The address without credentials, and the header that they make. */
function parseAddress(uri: string | undefined): {
  readonly address: string;
  readonly authorization: string | null;
} {
  const url = uri !== undefined && /^https?:/.test(uri) && URL.canParse(uri) ? new URL(uri) : null;
  if (url === null)
    throw new PeriodicEvalError({
      code: "config",
      where: "mlflowLogger trackingUri",
      got: uri === undefined ? "nothing" : "no address of a server",
      expected: "one that begins with http:// or https://",
      fix: "Set `trackingUri` or MLFLOW_TRACKING_URI to the address of an MLflow server.",
    });
  const {
    MLFLOW_TRACKING_TOKEN: token,
    MLFLOW_TRACKING_USERNAME: user,
    MLFLOW_TRACKING_PASSWORD: password,
  } = process.env;
  const basic = (name: string, secret: string) =>
    `Basic ${Buffer.from(`${name}:${secret}`).toString("base64")}`;
  const authorization =
    url.username !== ""
      ? basic(decoded(url.username), decoded(url.password))
      : token !== undefined
        ? `Bearer ${token}`
        : user !== undefined && password !== undefined
          ? basic(user, password)
          : null;
  url.username = "";
  url.password = "";
  return { address: url.href, authorization };
}

/** A percent sign that stands for itself is taken as it is. */
function decoded(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}
