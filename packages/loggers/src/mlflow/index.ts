import type { Logger } from "@periodic-eval/core";
import { configError, parseOptions } from "@periodic-eval/contracts/options";
import * as z from "zod";
import { wallClock } from "../options.ts";
import { outboxFields, outboxLogger, type OutboxOptions } from "../outbox/outbox-logger.ts";
import { mlflowDestination, type MlflowPlace } from "./destination.ts";

export interface MlflowOptions extends OutboxOptions {
  /** URL of the server. Default: `MLFLOW_TRACKING_URI`. */
  readonly trackingUri?: string;
  /** Experiment, created if it does not exist. Default: `MLFLOW_EXPERIMENT_NAME`, otherwise `Default`. */
  readonly experiment?: string;
  /** Name of the run. Default: a name that MLflow generates. */
  readonly runName?: string;
}

const where = "mlflowLogger options";

const schema = z.strictObject({
  ...outboxFields,
  trackingUri: z.string("a URL").optional(),
  experiment: z.string("a string").optional(),
  runName: z.string("a string").optional(),
} satisfies Record<keyof MlflowOptions, z.ZodType>);

/**
 * Sends scalars to an MLflow server over its REST API, under the names of `snapshotScalars` and `trainScalars`, with `run_step`
 * as the step. Characters that MLflow rejects in names are escaped (`metricName`). Each phase is a tag, `phase.<name>`, with
 * the run step at which it was first logged. The run's id is kept in `run_dir/loggers/mlflow.jsonl`, so a resumed run continues
 * the same MLflow run. Credentials come from `MLFLOW_TRACKING_TOKEN`, from `MLFLOW_TRACKING_USERNAME` and
 * `MLFLOW_TRACKING_PASSWORD`, or from the URL. No message contains them.
 *
 * @throws PeriodicEvalError `config` for a wrong option or a URL that is not http or https.
 */
export function mlflowLogger(options: MlflowOptions): Logger {
  parseOptions(where, schema, options);
  const { trackingUri = process.env["MLFLOW_TRACKING_URI"], now = wallClock } = options;
  const experiment = options.experiment ?? process.env["MLFLOW_EXPERIMENT_NAME"] ?? "Default";
  const target = { ...parseAddress(trackingUri), experiment, runName: options.runName, now };
  return outboxLogger(mlflowDestination(target), options);
}

/** Returns the URL without credentials, the authorization header, and the secrets in it. */
function parseAddress(uri: string | undefined): Pick<MlflowPlace, "address" | "authorization" | "secrets"> {
  const url = uri !== undefined && /^https?:/.test(uri) && URL.canParse(uri) ? new URL(uri) : null;
  // The journal stores the address, and parameters may contain a key.
  if (url === null || url.search !== "" || url.hash !== "")
    throw configError({
      where,
      path: ["trackingUri"],
      // The value may contain a password, so the message does not quote it.
      got: uri === undefined ? "nothing" : "a value that is not the URL of a server",
      expected: "a URL that begins with http:// or https://, without parameters",
      fix: "Set `trackingUri` or MLFLOW_TRACKING_URI to the URL of an MLflow server.",
    });
  const access = accessFor(url);
  url.username = "";
  url.password = "";
  return { address: url.href, ...access };
}

function accessFor(url: URL): Pick<MlflowPlace, "authorization" | "secrets"> {
  const {
    MLFLOW_TRACKING_TOKEN: token,
    MLFLOW_TRACKING_USERNAME: user,
    MLFLOW_TRACKING_PASSWORD: password,
  } = process.env;
  const basic = (name: string, secret: string) => {
    const encoded = Buffer.from(`${name}:${secret}`).toString("base64");
    return { authorization: `Basic ${encoded}`, secrets: [secret, encoded] };
  };
  if (url.username !== "") return basic(decode(url.username), decode(url.password));
  if (token !== undefined) return { authorization: `Bearer ${token}`, secrets: [token] };
  if (user !== undefined && password !== undefined) return basic(user, password);
  return { authorization: null, secrets: [] };
}

/** Decodes percent escapes; returns a string with a bare percent sign unchanged. */
function decode(value: string): string {
  try {
    return decodeURIComponent(value);
  } catch {
    return value;
  }
}
