import { readFile } from "node:fs/promises";
import { homedir } from "node:os";
import { join } from "node:path";
import { fetchBounded, maskSecret, ReplyTooLargeError } from "@periodic-eval/data";
import { shortMessage } from "@periodic-eval/contracts/options";
import { AbortError } from "p-retry";

/** Timeout of each request. */
const timeoutSeconds = 30;

export interface Server {
  readonly baseUrl: string;
  readonly apiKey: string;
}

/** Returns the API key of a server, from the environment or the file in which W&B's clients keep it. */
export async function apiKeyOf(baseUrl: string): Promise<string> {
  const { WANDB_API_KEY: key, NETRC } = process.env;
  if (key) return key;
  const path = NETRC ?? join(homedir(), process.platform === "win32" ? "_netrc" : ".netrc");
  const text = await readFile(path, "utf8").catch(() => "");
  const host = baseUrl.replace(/^.*:\/\//, "").split("/")[0]!;
  const machines = text.replaceAll(/^\s*#.*$/gm, "").split(/(?:^|\s)machine\s+/);
  const machine = machines.find((entry) => entry.split(/\s/, 1)[0] === host) ?? "";
  const password = /\spassword\s+(\S+)/.exec(machine)?.[1];
  if (password !== undefined) return password;
  throw new AbortError(`W&B needs an API key: set WANDB_API_KEY, or write a machine ${host} into ${path}`);
}

/** Posts a request. 429, 408 and 5xx are plain errors, which are retried; other failures are an `AbortError`. */
export async function post(
  { baseUrl, apiKey }: Server,
  path: string,
  body: unknown,
  signal: AbortSignal | null = null,
): Promise<string> {
  const credentials = Buffer.from(`api:${apiKey}`).toString("base64");
  const init = {
    method: "POST",
    redirect: "error" as const,
    headers: { "content-type": "application/json", authorization: `Basic ${credentials}` },
    body: JSON.stringify(body),
    signal,
  };
  const reply = await fetchBounded(baseUrl + path, init, { timeoutSeconds }).catch((error: unknown) => {
    if (!(error instanceof ReplyTooLargeError)) throw error;
    throw new AbortError(`W&B sent ${error.message} to ${path}`);
  });
  const { status, ok } = reply.response;
  // A server may echo the key or the header. Masked before it is cut: a part of the key at the cut would no longer match.
  const text = [apiKey, credentials].reduce(maskSecret, reply.text());
  if (ok) return text;
  const message = `W&B answered ${status} to ${path}: ${shortMessage(text)}`;
  throw status === 408 || status === 429 || status >= 500 ? new Error(message) : new AbortError(message);
}

interface QueryReply<T> {
  readonly data?: T;
  readonly errors?: readonly { readonly message: string }[];
}

function parsed<T>(reply: string): QueryReply<T> {
  try {
    return (JSON.parse(reply) as QueryReply<T> | null) ?? {};
  } catch (cause) {
    throw new Error(`W&B sent a reply to /graphql that is not JSON: ${shortMessage(reply)}`, { cause });
  }
}

async function query<T>(
  server: Server,
  text: string,
  variables: object,
  signal: AbortSignal | null,
): Promise<T> {
  const { data, errors } = parsed<T>(await post(server, "/graphql", { query: text, variables }, signal));
  if (data) return data;
  const messages = errors?.map(({ message }) => message).join("; ") ?? "no data";
  throw new AbortError(`W&B rejected a query: ${shortMessage(messages)}`);
}

/** Returns the default entity of the API key's user. */
export async function defaultEntity(server: Server, signal: AbortSignal | null = null): Promise<string> {
  const text = "query Viewer { viewer { entity } }";
  const { viewer } = await query<{ viewer: { entity: string | null } | null }>(server, text, {}, signal);
  if (!viewer) throw new AbortError("W&B has no user with this API key");
  if (viewer.entity) return viewer.entity;
  throw new AbortError("W&B knows no default entity of this user: set WANDB_ENTITY");
}

/** A run, by its id in a project of an entity. */
export interface RunKey {
  readonly id: string;
  readonly project: string;
  readonly entity: string;
}

export interface History {
  readonly lines: number;
  readonly summary: Readonly<Record<string, unknown>>;
}

/** Returns the history length and summary of a run with the query that wandb's Python client uses to resume one. */
export async function historyOf(server: Server, run: RunKey, signal: AbortSignal): Promise<History> {
  const text = `query RunResumeStatus($project: String, $entity: String, $name: String!) {
    model(name: $project, entityName: $entity) {
      bucket(name: $name, missingOk: true) { historyLineCount summaryMetrics }
    }
  }`;
  const { id: name, project, entity } = run;
  const { model } = await query<{
    model: { bucket: { historyLineCount: number | null; summaryMetrics: string | null } | null } | null;
  }>(server, text, { project, entity, name }, signal);
  const { historyLineCount: lines, summaryMetrics: summary } = model?.bucket ?? {};
  return { lines: lines ?? 0, summary: JSON.parse(summary ?? "{}") as History["summary"] };
}

/** Creates a run, or marks it as running again. */
export async function upsertRun(
  server: Server,
  { id: name, project, entity }: RunKey,
  shown: { readonly name: string | null; readonly config: Readonly<Record<string, unknown>> },
  signal: AbortSignal,
): Promise<void> {
  const text = `mutation UpsertBucket(
    $name: String, $project: String, $entity: String, $displayName: String, $config: JSONString
  ) {
    upsertBucket(input: {
      name: $name, modelName: $project, entityName: $entity, displayName: $displayName, config: $config
    }) { bucket { id } }
  }`;
  const config = Object.fromEntries(Object.entries(shown.config).map(([key, value]) => [key, { value }]));
  const run = { name, project, entity, ...(shown.name !== null && { displayName: shown.name }) };
  await query(server, text, { ...run, config: JSON.stringify(config) }, signal);
}
