import { isRecord, valueAt } from "@periodic-eval/contracts/options";
import { hashText } from "@periodic-eval/core/random";
import { AbortError } from "p-retry";
import type { Point } from "../outbox/journal.ts";
import type { Destination } from "../outbox/sending.ts";
import { jsonNumber } from "../scalars.ts";
import { MissingError, mlflowRest, type MlflowRest } from "./rest.ts";

/** Maximum length of a metric key in MLflow. */
const maxLength = 250;

/**
 * Converts a name to one that MLflow accepts: ASCII letters and digits, `_`, `-`, `.`, space, `:` and `/`. Any other character
 * becomes `_x` and its hexadecimal code point, and so do dots and slashes that would change the path (`..`, `a//b`), so
 * different names stay different. A name that is too long ends in a hash of the whole name.
 */
export function metricName(name: string): string {
  const allowed = [...name].map((char) => (/[\w\-. :/]/.test(char) ? char : codeOf(char))).join("");
  const parts = allowed
    .split("/")
    .map((part) => (/^\.*$/.test(part) ? [...part].map(codeOf).join("") || "_" : part));
  const path = parts.join("/");
  if (path.length <= maxLength) return path;
  const mark = hashText(path).replaceAll(/\W/g, "").slice(-16);
  return `${path.slice(0, maxLength - mark.length - 1).replace(/[/.]+$/, "")}_${mark}`;
}

const codeOf = (character: string): string => `_x${character.codePointAt(0)!.toString(16)}`;

/** The server, the experiment and the run's name. */
export interface MlflowPlace {
  /** Without credentials. */
  readonly address: string;
  readonly authorization: string | null;
  /** Strings to mask in messages. */
  readonly secrets: readonly string[];
  readonly experiment: string;
  readonly runName: string | undefined;
  readonly now: () => number;
}

/** The stored identity of a run. */
interface MlflowRun {
  readonly address: string;
  readonly runId: string;
}

const phaseTag = "phase.";

/** Maximum number of metrics in a `log-batch` request. */
const batchSize = 1000;

/** Writes an MLflow run over the REST API. Repeated requests are idempotent, because timestamps are those of the points. */
export function mlflowDestination({
  address,
  experiment,
  runName,
  now,
  ...access
}: MlflowPlace): Destination {
  const rest = mlflowRest(address, access);
  let runId = "";
  const phases = new Set<string>();
  const update = (status: string, ended: object, signal: AbortSignal) =>
    rest.post("runs/update", { run_id: runId, status, ...ended }, signal);

  return {
    name: "mlflow",
    pauseSeconds: 1,
    async open(stored, signal) {
      const run = stored.run as MlflowRun | null;
      if (run === null) {
        const experiment_id = await experimentId(rest, experiment, signal);
        const body = {
          experiment_id,
          start_time: now(),
          ...(runName !== undefined && { run_name: runName }),
        };
        runId = stringAt(await rest.post("runs/create", body, signal), "run", "info", "run_id");
        stored.storeRun({ address, runId });
      } else {
        if (run.address !== address)
          throw new AbortError(`this run was logged to another server, ${run.address}`);
        ({ runId } = run);
        const reply = await rest.get("runs/get", { run_id: runId }, signal).catch(abortIfMissing);
        for (const key of tagsOf(reply)) if (key.startsWith(phaseTag)) phases.add(key.slice(phaseTag.length));
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
      // A single point may exceed the limit of a request.
      for (let from = 0; from < metrics.length; from += batchSize) {
        const body = { run_id: runId, metrics: metrics.slice(from, from + batchSize) };
        await rest.post("runs/log-batch", body, signal).catch(abortIfMissing);
      }
      for (const { phase, runStep } of taken) {
        if (phases.has(phase)) continue;
        await rest.post(
          "runs/set-tag",
          { run_id: runId, key: phaseTag + phase, value: `from run step ${runStep}` },
          signal,
        );
        phases.add(phase);
      }
      return taken.length;
    },
    async close(isDone) {
      if (isDone && runId !== "") await update("FINISHED", { end_time: now() }, AbortSignal.timeout(10_000));
    },
  };
}

/** Returns as many points as fit one request, but at least one. */
function firstPoints(points: readonly Point[]): readonly Point[] {
  let metrics = 0;
  const end = points.findIndex(
    ({ values }, i) => (metrics += Object.keys(values).length) > batchSize && i > 0,
  );
  return end === -1 ? [...points] : points.slice(0, end);
}

async function experimentId(rest: MlflowRest, name: string, signal: AbortSignal): Promise<string> {
  try {
    const reply = await rest.get("experiments/get-by-name", { experiment_name: name }, signal);
    return stringAt(reply, "experiment", "experiment_id");
  } catch (error) {
    if (!(error instanceof MissingError)) throw error;
    return stringAt(await rest.post("experiments/create", { name }, signal), "experiment_id");
  }
}

/** Returns the string at a path of a reply. Any other reply is not MLflow's, and may be temporary: a proxy's, for example. */
function stringAt(reply: unknown, ...path: readonly string[]): string {
  const value = valueAt(reply, path);
  if (typeof value === "string" && value !== "") return value;
  throw new Error(`MLflow sent a reply without ${path.join(".")}`);
}

/** Returns the keys of a run's tags. A run without tags has no such field. */
function tagsOf(reply: unknown): readonly string[] {
  if (!isRecord(valueAt(reply, ["run"]))) throw new Error("MLflow sent a reply without run");
  const tags = valueAt(reply, ["run", "data", "tags"]) ?? [];
  return (Array.isArray(tags) ? tags : []).map((tag: unknown) => stringAt(tag, "key"));
}

function abortIfMissing(error: unknown): never {
  throw error instanceof MissingError
    ? new AbortError(
        `${error.message}. Move loggers/mlflow.jsonl out of the run's folder to start a new run.`,
      )
    : error;
}
