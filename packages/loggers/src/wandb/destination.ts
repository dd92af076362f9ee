import { randomBytes } from "node:crypto";
import { AbortError } from "p-retry";
import { jsonNumbers } from "../scalars.ts";
import type { Destination } from "../outbox/sending.ts";
import { apiKeyOf, defaultEntity, historyOf, post, upsertRun, type Server } from "./api.ts";

export interface WandbPlace {
  readonly project: string;
  readonly entity: string | null;
  readonly name: string | null;
  readonly config: Readonly<Record<string, unknown>>;
  readonly baseUrl: string;
  readonly now: () => number;
}

/** Maximum number of lines in a request. */
const batchSize = 1000;

interface OpenRun {
  readonly server: Server;
  readonly path: string;
  /** Number of lines that the server has accepted. */
  lines: number;
  /** The last value of each name, which W&B shows for the run. */
  summary: Readonly<Record<string, unknown>>;
}

/** Writes a W&B run over the API of W&B's clients. Repeated requests are idempotent, because each names the number of its first line. */
export function wandbDestination({ project, entity, baseUrl, now, ...shown }: WandbPlace): Destination {
  const began = now();
  let run: OpenRun | null = null;

  return {
    name: "wandb",
    pauseSeconds: 5,
    async open({ run: stored, sent, storeRun }, signal) {
      const known = stored as { readonly id: string; readonly project: string } | null;
      if (known !== null && known.project !== project)
        throw new AbortError(`this run was logged to another project, ${known.project}`);
      const id = known?.id ?? randomBytes(4).toString("hex");
      // Store the id before the server learns of it, so that a process that dies in between leaves no second run.
      if (known === null) storeRun({ id, project });
      const server = { baseUrl, apiKey: await apiKeyOf(baseUrl) };
      const user = await defaultEntity(server, signal);
      const key = { id, project, entity: entity ?? user };
      const { lines, summary } =
        known === null ? { lines: 0, summary: {} } : await historyOf(server, key, signal);
      await upsertRun(server, key, shown, signal);
      const path = `/files/${key.entity}/${project}/${id}/file_stream`;
      run = { server, path, lines: Math.max(sent, lines), summary };
      return run.lines;
    },
    async send(points, signal) {
      const { server, path, lines, summary } = run!;
      const taken = points.slice(0, batchSize).map(({ values, runStep, phase, time }, at) => ({
        ...jsonNumbers(values),
        // The x axis: W&B's own step only counts lines.
        run_step: runStep,
        phase,
        _step: lines + at,
        _runtime: Math.max(0, time - began) / 1000,
        _timestamp: time / 1000,
      }));
      const merged = Object.assign({ ...summary }, ...taken) as OpenRun["summary"];
      const files = {
        "wandb-history.jsonl": { offset: lines, content: taken.map((line) => JSON.stringify(line)) },
        "wandb-summary.json": { offset: 0, content: [JSON.stringify(merged)] },
      };
      await post(server, path, { files }, signal);
      Object.assign(run!, { lines: lines + taken.length, summary: merged });
      return taken.length;
    },
    async close(isDone) {
      if (isDone && run !== null)
        await post(run.server, run.path, { complete: true, exitcode: 0 }, AbortSignal.timeout(10_000));
    },
  };
}
