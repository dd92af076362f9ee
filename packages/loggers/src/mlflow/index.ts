import { PeriodicEvalError, type Logger } from "@periodic-eval/core";
import { AbortError } from "p-retry";
import { jsonNumber } from "../json-number.ts";
import type { Point } from "../outbox/journal.ts";
import { outboxLogger, type Destination, type OutboxOptions } from "../outbox/outbox-logger.ts";
import { metricName } from "./metric-name.ts";
import { MissingError, mlflowRest, type MlflowRest } from "./rest.ts";

export interface MlflowOptions extends OutboxOptions {
  /** Address of the server; default `MLFLOW_TRACKING_URI`. */
  readonly trackingUri?: string;
  /** Made where there is none; default `MLFLOW_EXPERIMENT_NAME`, else `Default`. */
  readonly experiment?: string;
  /** What the run is called; MLflow thinks of a name where it is left out. */
  readonly runName?: string;
}

/** Most metrics in one call of `log-batch`. */
const batchSize = 1000;

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
  const { trackingUri = process.env["MLFLOW_TRACKING_URI"], now = Date.now } = options;
  const { address, authorization } = parseAddress(trackingUri);
  const experiment = options.experiment ?? process.env["MLFLOW_EXPERIMENT_NAME"] ?? "Default";
  const rest = mlflowRest(address, authorization);
  return outboxLogger(mlflowDestination(rest, { address, experiment, runName: options.runName, now }), options);
}

interface Place {
  readonly address: string;
  readonly experiment: string;
  readonly runName: string | undefined;
  readonly now: () => number;
}

/** What is kept of a run. */
interface MlflowRun {
  readonly address: string;
  readonly runId: string;
}

interface FoundRun {
  readonly run: { readonly data: { readonly tags?: readonly { readonly key: string }[] } };
}

const phaseTag = "phase.";

function mlflowDestination(rest: MlflowRest, { address, experiment, runName, now }: Place): Destination {
  let runId = "";
  const phases = new Set<string>();
  const update = (status: string, ended: object, signal: AbortSignal) =>
    rest.post("runs/update", { run_id: runId, status, ...ended }, signal);

  return {
    name: "mlflow",
    pauseSeconds: 1,
    async open(kept, signal) {
      const run = kept.run as MlflowRun | null;
      if (run === null) {
        const experiment_id = await experimentId(rest, experiment, signal);
        const made = (await rest.post(
          "runs/create",
          { experiment_id, start_time: now(), ...(runName !== undefined && { run_name: runName }) },
          signal,
        )) as { run: { info: { run_id: string } } };
        runId = made.run.info.run_id;
        kept.keep({ address, runId });
      } else {
        if (run.address !== address) throw new AbortError(`this run was logged to another server, ${run.address}`);
        ({ runId } = run);
        const found = (await rest.get("runs/get", { run_id: runId }, signal).catch(abortIfMissing)) as FoundRun;
        for (const { key } of found.run.data.tags ?? [])
          if (key.startsWith(phaseTag)) phases.add(key.slice(phaseTag.length));
        await update("RUNNING", {}, signal);
      }
      return null;
    },
    async send(points, signal) {
      const taken = firstPoints(points);
      const metrics = taken.flatMap(({ values, time, runStep }) =>
        Object.entries(values).map(([name, value]) => ({
          key: metricName(name),
          value: jsonNumber(value),
          timestamp: time,
          step: runStep,
        })),
      );
      // A point alone may be more than one call takes.
      for (let from = 0; from < metrics.length; from += batchSize) {
        const body = { run_id: runId, metrics: metrics.slice(from, from + batchSize) };
        await rest.post("runs/log-batch", body, signal).catch(abortIfMissing);
      }
      for (const { phase, runStep } of taken) {
        if (phases.has(phase)) continue;
        await rest.post("runs/set-tag", { run_id: runId, key: phaseTag + phase, value: `from run step ${runStep}` }, signal);
        phases.add(phase);
      }
      return taken.length;
    },
    async close(isDone) {
      if (isDone && runId !== "") await update("FINISHED", { end_time: now() }, AbortSignal.timeout(10_000));
    },
  };
}

/** As many points as one call takes, and one at least. */
function firstPoints(points: readonly Point[]): readonly Point[] {
  let metrics = 0;
  const end = points.findIndex(({ values }, i) => (metrics += Object.keys(values).length) > batchSize && i > 0);
  return end === -1 ? [...points] : points.slice(0, end);
}

async function experimentId(rest: MlflowRest, name: string, signal: AbortSignal): Promise<string> {
  try {
    const found = await rest.get("experiments/get-by-name", { experiment_name: name }, signal);
    return (found as { experiment: { experiment_id: string } }).experiment.experiment_id;
  } catch (error) {
    if (!(error instanceof MissingError)) throw error;
    return ((await rest.post("experiments/create", { name }, signal)) as { experiment_id: string }).experiment_id;
  }
}

function abortIfMissing(error: unknown): never {
  throw error instanceof MissingError
    ? new AbortError(`${error.message}. Move loggers/mlflow.jsonl out of the run's folder to begin another run.`)
    : error;
}

/** The address without credentials, and the header that they make. */
function parseAddress(uri: string | undefined): { readonly address: string; readonly authorization: string | null } {
  const url = uri !== undefined && /^https?:/.test(uri) && URL.canParse(uri) ? new URL(uri) : null;
  if (url === null)
    throw new PeriodicEvalError({
      code: "config",
      where: "mlflowLogger trackingUri",
      got: uri === undefined ? "nothing" : "no address of a server",
      expected: "one that begins with http:// or https://",
      fix: "Set `trackingUri` or MLFLOW_TRACKING_URI to the address of an MLflow server.",
    });
  const { MLFLOW_TRACKING_TOKEN: token, MLFLOW_TRACKING_USERNAME: user, MLFLOW_TRACKING_PASSWORD: password } = process.env;
  const basic = (name: string, secret: string) => `Basic ${Buffer.from(`${name}:${secret}`).toString("base64")}`;
  const authorization =
    url.username !== ""
      ? basic(decodeURIComponent(url.username), decodeURIComponent(url.password))
      : token !== undefined
        ? `Bearer ${token}`
        : user !== undefined && password !== undefined
          ? basic(user, password)
          : null;
  url.username = "";
  url.password = "";
  return { address: url.href, authorization };
}
