import { serveJson, type Reply } from "../loopback.test-data.ts";
import type { AtEnd } from "../../../testing/src/temporary-folder.test-data.ts";

export type HistoryLine = Readonly<Record<string, unknown>>;

export interface WandbServer {
  readonly url: string;
  /** Runs by id, as W&B's server stores them: one history line per index. */
  readonly runs: Map<
    string,
    { readonly lines: HistoryLine[]; config: unknown; summary: HistoryLine; isComplete: boolean }
  >;
  /** Replies instead of normal answers, in order. `isTaken`: the request is handled first. */
  readonly faults: { readonly path: RegExp; readonly reply: Reply; readonly isTaken?: boolean }[];
  readonly keys: string[];
}

interface Chunk {
  readonly files?: Readonly<Record<string, { readonly offset: number; readonly content: readonly string[] }>>;
  readonly complete?: boolean;
}

/** Starts a server that records runs and history lines as W&B's clients send them. */
export async function wandbServer(atEnd: AtEnd): Promise<WandbServer> {
  const server: Omit<WandbServer, "url"> = { runs: new Map(), faults: [], keys: [] };

  function graphql(query: string, variables: Readonly<Record<string, string>>): Reply {
    if (query.includes("UpsertBucket")) {
      const { name, config } = variables;
      const run = server.runs.get(name!) ?? { lines: [], config: null, summary: {}, isComplete: false };
      server.runs.set(name!, Object.assign(run, { config: JSON.parse(config ?? "null"), isComplete: false }));
      return {
        body: { data: { upsertBucket: { bucket: { id: name, name, displayName: name }, inserted: true } } },
      };
    }
    if (query.includes("viewer")) return { body: { data: { viewer: { id: "u", entity: "someone" } } } };
    const run = server.runs.get(variables["name"]!);
    const bucket = run && { historyLineCount: run.lines.length, summaryMetrics: JSON.stringify(run.summary) };
    return { body: { data: { model: { bucket: bucket ?? null } } } };
  }

  function fileStream(path: string, { files = {}, complete }: Chunk): Reply {
    const run = server.runs.get(path.split("/")[4]!);
    if (run === undefined) return { status: 404, body: { error: "no such run" } };
    const history = files["wandb-history.jsonl"];
    for (const [i, line] of (history?.content ?? []).entries())
      run.lines[history!.offset + i] = JSON.parse(line) as HistoryLine;
    const summary = files["wandb-summary.json"];
    if (summary) run.summary = JSON.parse(summary.content[0]!) as HistoryLine;
    if (complete === true) run.isComplete = true;
    return {};
  }

  const url = await serveJson((path, body, request) => {
    const credentials = (request.headers.authorization ?? "").replace("Basic ", "");
    server.keys.push(Buffer.from(credentials, "base64").toString().replace("api:", ""));
    const work = () =>
      path === "/graphql"
        ? graphql(body["query"] as string, body["variables"] as Record<string, string>)
        : fileStream(path, body);
    const [fault] = server.faults;
    if (fault === undefined || !fault.path.test(path)) return work();
    server.faults.shift();
    if (fault.isTaken === true) work();
    return fault.reply;
  }, atEnd);
  return { url, ...server };
}
