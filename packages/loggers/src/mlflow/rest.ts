import { fetchBounded, maskSecret, ReplyTooLargeError } from "@periodic-eval/data";
import { isRecord, quoteValue, shortMessage } from "@periodic-eval/contracts/options";
import { AbortError } from "p-retry";

/** MLflow's REST API 2.0. */
export interface MlflowRest {
  get(path: string, query: Readonly<Record<string, string>>, signal: AbortSignal): Promise<unknown>;
  post(path: string, body: object, signal: AbortSignal): Promise<unknown>;
}

/** MLflow's error RESOURCE_DOES_NOT_EXIST. */
export class MissingError extends Error {}

/** Timeout of each request. */
const timeoutSeconds = 30;

/**
 * Returns a client of the REST API. Transient failures (408, 425, 429, 5xx, no connection, a reply that is not MLflow's) are plain
 * Errors; a missing resource is a `MissingError`; all others are p-retry's `AbortError`. No message contains one of `secrets`.
 * Redirects are not followed, so that no login page counts as a success.
 */
export function mlflowRest(
  trackingUri: string,
  { authorization, secrets }: { readonly authorization: string | null; readonly secrets: readonly string[] },
): MlflowRest {
  const base = trackingUri.replace(/\/+$/, "");
  const masked = (text: string) => secrets.reduce(maskSecret, text);

  async function call(path: string, init: RequestInit, signal: AbortSignal): Promise<unknown> {
    const headers = { "content-type": "application/json", ...(authorization !== null && { authorization }) };
    const url = `${base}/api/2.0/mlflow/${path}`;
    const endpoint = path.split("?")[0]!;
    const request = { ...init, headers, signal, redirect: "manual" as const };
    const reply = await fetchBounded(url, request, { timeoutSeconds }).catch((error: unknown) => {
      if (error instanceof ReplyTooLargeError)
        throw new AbortError(`MLflow sent ${error.message} to ${endpoint}`);
      // For a token that no header can contain, the message of `fetch` quotes it.
      if (error instanceof TypeError && masked(error.message) !== error.message)
        throw new AbortError(masked(error.message));
      throw error;
    });
    const { status, ok } = reply.response;
    const text = reply.text();
    const body = parsedOrNull(text, masked);
    const code = body?.["error_code"] ?? "";
    if (ok && body !== null && code === "") return body;
    const answered = `MLflow answered ${status} to ${endpoint}`;
    if (status >= 300 && status < 400)
      throw new AbortError(
        `${answered}: a redirect, which is not followed. Use the final URL as trackingUri`,
      );
    const description = `${answered}: ${quoted(code)} ${quoted(body?.["message"] ?? masked(text))}`.trim();
    if (code === "RESOURCE_DOES_NOT_EXIST") throw new MissingError(description);
    const isTransient = ok || [408, 425, 429].includes(status) || status >= 500;
    throw isTransient ? new Error(description) : new AbortError(description);
  }

  return {
    get: (path, query, signal) => call(`${path}?${new URLSearchParams(query)}`, { method: "GET" }, signal),
    post: (path, body, signal) => call(path, { method: "POST", body: JSON.stringify(body) }, signal),
  };
}

/** Returns a reply's JSON object with masked strings, in which a server may escape any character; null for anything else. */
function parsedOrNull(
  text: string,
  masked: (text: string) => string,
): Readonly<Record<string, unknown>> | null {
  try {
    const body: unknown = JSON.parse(text, (_, value: unknown) =>
      typeof value === "string" ? masked(value) : value,
    );
    return isRecord(body) ? body : null;
  } catch {
    return null;
  }
}

const quoted = (value: unknown): string =>
  shortMessage(typeof value === "string" ? value : quoteValue(value));
