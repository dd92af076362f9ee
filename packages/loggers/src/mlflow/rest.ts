import { AbortError } from "p-retry";

/** MLflow's REST API 2.0. */
export interface MlflowRest {
  get(path: string, query: Readonly<Record<string, string>>, signal: AbortSignal): Promise<unknown>;
  post(path: string, body: object, signal: AbortSignal): Promise<unknown>;
}

/** What MLflow calls a thing that is not there. */
export class MissingError extends Error {}

/** Longest wait for one answer. */
const answerSeconds = 30;

/**
 * Errors that waiting may mend (429, 408, 5xx, no connection) are plain; `MissingError` says what is not there; all others
 * are p-retry's `AbortError`. None holds a credential: those of the address are taken out of it.
 */
export function mlflowRest(trackingUri: string, authorization: string | null): MlflowRest {
  const base = trackingUri.replace(/\/+$/, "");

  async function call(path: string, init: RequestInit, signal: AbortSignal): Promise<unknown> {
    const response = await fetch(`${base}/api/2.0/mlflow/${path}`, {
      ...init,
      headers: { "content-type": "application/json", ...(authorization !== null && { authorization }) },
      signal: AbortSignal.any([signal, AbortSignal.timeout(1000 * answerSeconds)]),
    });
    const text = await response.text();
    if (response.ok) return text === "" ? {} : JSON.parse(text);
    const { error_code: code = "", message = text.slice(0, 200) } = errorOf(text);
    const said = `MLflow answered ${response.status} to ${path.split("?")[0]}: ${code} ${message}`.trim();
    if (code === "RESOURCE_DOES_NOT_EXIST") throw new MissingError(said);
    const mayPass = response.status === 408 || response.status === 429 || response.status >= 500;
    throw mayPass ? new Error(said) : new AbortError(said);
  }

  return {
    get: (path, query, signal) => call(`${path}?${new URLSearchParams(query)}`, { method: "GET" }, signal),
    post: (path, body, signal) => call(path, { method: "POST", body: JSON.stringify(body) }, signal),
  };
}

function errorOf(text: string): { readonly error_code?: string; readonly message?: string } {
  try {
    return JSON.parse(text) as { error_code?: string; message?: string };
  } catch {
    return {};
  }
}
