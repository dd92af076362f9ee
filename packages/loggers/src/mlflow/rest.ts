import { fetchBounded, maskSecret, ReplyTooLargeError } from "@periodic-eval/core/internal";
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
 * Returns a client of the REST API. Transient failures (429, 408, 5xx, no connection) are plain Errors; a missing resource is a
 * `MissingError`; all others are p-retry's `AbortError`. No message contains credentials,
 * even if the server echoes them. A redirect is a failure, so that no other server receives the values.
 */
export function mlflowRest(trackingUri: string, authorization: string | null): MlflowRest {
  const secrets = secretsIn(authorization);
  const base = trackingUri.replace(/\/+$/, "");

  async function call(path: string, init: RequestInit, signal: AbortSignal): Promise<unknown> {
    const headers = { "content-type": "application/json", ...(authorization !== null && { authorization }) };
    const url = `${base}/api/2.0/mlflow/${path}`;
    const reply = await fetchBounded(
      url,
      { ...init, headers, signal, redirect: "error" },
      { timeoutSeconds },
    ).catch((error: unknown) => {
      if (!(error instanceof ReplyTooLargeError)) throw error;
      throw new AbortError(`MLflow sent ${error.message} to ${path.split("?")[0]}`);
    });
    const { response } = reply;
    const text = reply.text();
    if (response.ok) return text === "" ? {} : JSON.parse(text);
    const shown = secrets.reduce(maskSecret, text);
    const { error_code: code = "", message = shown.slice(0, 200) } = errorOf(shown);
    const description =
      `MLflow answered ${response.status} to ${path.split("?")[0]}: ${code} ${message}`.trim();
    if (code === "RESOURCE_DOES_NOT_EXIST") throw new MissingError(description);
    const isTransient = response.status === 408 || response.status === 429 || response.status >= 500;
    throw isTransient ? new Error(description) : new AbortError(description);
  }

  return {
    get: (path, query, signal) => call(`${path}?${new URLSearchParams(query)}`, { method: "GET" }, signal),
    post: (path, body, signal) => call(path, { method: "POST", body: JSON.stringify(body) }, signal),
  };
}

/** Returns what a message must not contain: the token, or user name and password together, encoded, and the password. */
function secretsIn(authorization: string | null): readonly string[] {
  const [scheme = "", secret = ""] = authorization?.split(" ") ?? [];
  if (scheme !== "Basic") return [secret];
  return [
    secret,
    Buffer.from(secret, "base64")
      .toString()
      .replace(/^[^:]*:/, ""),
  ];
}

function errorOf(text: string): { readonly error_code?: string; readonly message?: string } {
  try {
    return JSON.parse(text) as { error_code?: string; message?: string };
  } catch {
    return {};
  }
}
