import { fetchBounded, maskSecret, ReplyTooLargeError } from "@periodic-eval/data";
import { shortMessage } from "@periodic-eval/contracts/options";

/** A permanent error of the W&B server. */
export class PermanentError extends Error {}

/** Timeout of each request. */
const timeoutSeconds = 30;

export interface Server {
  readonly baseUrl: string;
  readonly apiKey: string;
}

const credentials = (apiKey: string): string => Buffer.from(`api:${apiKey}`).toString("base64");

/** Masks the API key, and the header that contains it: a server may echo both. */
export const withoutKey = (text: string, apiKey: string): string =>
  [apiKey, credentials(apiKey)].reduce(maskSecret, text);

/** Posts a request and checks the answer, which the SDK does not. 429, 408 and 5xx are transient; other failures are a `PermanentError`. */
export async function post({ baseUrl, apiKey }: Server, path: string, body: unknown): Promise<string> {
  const init = {
    method: "POST",
    redirect: "error" as const,
    headers: {
      "content-type": "application/json",
      authorization: `Basic ${credentials(apiKey)}`,
    },
    body: JSON.stringify(body),
  };
  const reply = await fetchBounded(baseUrl + path, init, { timeoutSeconds }).catch((error: unknown) => {
    if (!(error instanceof ReplyTooLargeError)) throw error;
    throw new PermanentError(`W&B sent ${error.message} to ${path}`);
  });
  const { response } = reply;
  // Masked before it is cut: a part of the key at the cut would no longer match.
  const text = withoutKey(reply.text(), apiKey);
  if (response.ok) return text;
  const message = `W&B answered ${response.status} to ${path}: ${shortMessage(text)}`;
  const isTransient = response.status === 408 || response.status === 429 || response.status >= 500;
  throw isTransient ? new Error(message) : new PermanentError(message);
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

async function query<T>(server: Server, text: string, variables: object): Promise<T> {
  const { data, errors } = parsed<T>(await post(server, "/graphql", { query: text, variables }));
  if (data) return data;
  const messages = errors?.map(({ message }) => withoutKey(message, server.apiKey)).join("; ") ?? "no data";
  throw new PermanentError(`W&B rejected a query: ${shortMessage(messages)}`);
}

/** Throws if the server rejects the API key. Called first, because the SDK would exit the process. */
export async function checkKey(server: Server): Promise<void> {
  const { viewer } = await query<{ viewer: unknown }>(server, "query Viewer { viewer { entity } }", {});
  if (!viewer) throw new PermanentError("W&B has no user with this API key");
}

export interface History {
  readonly lines: number;
  readonly summary: Readonly<Record<string, unknown>>;
}

/** Returns the history length and summary of a run with the query that wandb's Python client uses to resume one. */
export async function historyOf(
  server: Server,
  { id, project, entity }: { readonly id: string; readonly project: string; readonly entity: string | null },
): Promise<History> {
  const text = `query RunResumeStatus($project: String, $entity: String, $name: String!) {
    model(name: $project, entityName: $entity) {
      bucket(name: $name, missingOk: true) { historyLineCount summaryMetrics }
    }
  }`;
  const { model } = await query<{
    model: { bucket: { historyLineCount: number | null; summaryMetrics: string | null } | null } | null;
  }>(server, text, { project, entity, name: id });
  const { historyLineCount: lines, summaryMetrics: summary } = model?.bucket ?? {};
  return { lines: lines ?? 0, summary: JSON.parse(summary ?? "{}") as History["summary"] };
}
