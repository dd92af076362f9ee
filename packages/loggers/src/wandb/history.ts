/** What a W&B server says that no waiting mends. */
export class FinalError extends Error {}

/** Longest wait for one answer. */
const answerSeconds = 30;

export interface Server {
  readonly baseUrl: string;
  readonly apiKey: string;
}

/** Checks the answer, which the SDK does not. 429, 408 and 5xx may pass; what else is no success is a `FinalError`. */
export async function post({ baseUrl, apiKey }: Server, path: string, body: unknown): Promise<string> {
  const response = await fetch(baseUrl + path, {
    method: "POST",
    headers: {
      "content-type": "application/json",
      authorization: `Basic ${Buffer.from(`api:${apiKey}`).toString("base64")}`,
    },
    body: JSON.stringify(body),
    signal: AbortSignal.timeout(1000 * answerSeconds),
  });
  const text = await response.text();
  if (response.ok) return text;
  const message = `W&B answered ${response.status} to ${path}: ${text.slice(0, 200)}`;
  const mayPass = response.status === 408 || response.status === 429 || response.status >= 500;
  throw mayPass ? new Error(message) : new FinalError(message);
}

async function query<T>(server: Server, text: string, variables: object): Promise<T> {
  const { data, errors } = JSON.parse(await post(server, "/graphql", { query: text, variables })) as {
    data?: T;
    errors?: readonly { readonly message: string }[];
  };
  if (data) return data;
  throw new FinalError(
    `W&B refused a question: ${errors?.map(({ message }) => message).join("; ") ?? "no data"}`,
  );
}

/** Whether the key opens the server, before the SDK ends the process over it. */
export async function checkKey(server: Server): Promise<void> {
  const { viewer } = await query<{ viewer: unknown }>(server, "query Viewer { viewer { entity } }", {});
  if (!viewer) throw new FinalError("W&B knows no user of this key");
}

export interface History {
  readonly lines: number;
  readonly summary: Readonly<Record<string, unknown>>;
}

/** What a run holds, asked as wandb's Python client asks where it resumes one. */
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
