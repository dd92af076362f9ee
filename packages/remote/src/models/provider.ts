import type { Completion, Json, Sampling } from "@periodic-eval/core";
import { fetchWholeReply } from "../http/fetch-whole-reply.ts";
import type { ServedChat } from "./served-chat.ts";

export interface ServedModelOptions {
  /** The model's name on the server. */
  readonly model: string;
  /** The address of the API. Default: the provider's environment variable, then the provider's public address. */
  readonly baseUrl?: string;
  /** The environment variable that holds the API key; null sends no key. Default: the provider's variable. */
  readonly apiKeyEnv?: string | null;
  /** Time limit of one attempt, including the body of the reply. Default 60. */
  readonly timeoutSeconds?: number;
  /**
   * Retries after 408, 409, 429, 5xx, a timeout or a broken connection, after the time in `Retry-After` or with back-off.
   * Default 4.
   */
  readonly maxRetries?: number;
  /** Concurrent requests. Default 8. */
  readonly concurrency?: number;
  /**
   * Additional fields of the request body. They override the fields that this package sets; null removes a field that a model
   * does not accept. The model's identity contains their names and a hash but not their values, because some gateways expect
   * keys here.
   */
  readonly body?: { readonly [field: string]: Json };
}

/** One API: its names, and how to request a completion. */
export interface Provider {
  /** Name of the public function, for error messages. */
  readonly name: string;
  readonly engine: string;
  readonly defaultUrl: string;
  readonly urlEnv: string;
  readonly keyEnv: string;
  /** The npm package of the client. */
  readonly packageName: string;
  /** Creates the client, at the first request, because importing a client is slow. */
  connect(connection: Connection): Promise<Complete>;
}

export interface Connection {
  readonly model: string;
  readonly url: string;
  /** Whether the host differs from the provider's. */
  readonly isOtherHost: boolean;
  readonly key: string;
  readonly timeoutSeconds: number;
  readonly maxRetries: number;
  readonly body: { readonly [field: string]: Json };
}

/**
 * Requests one completion, with retries.
 *
 * @throws the client's errors; PeriodicEvalError for a request that the API cannot represent.
 */
export type Complete = (chat: ServedChat, sampling: Sampling, signal: AbortSignal) => Promise<Completion>;

/** Returns the options that both official clients accept. */
export const clientOptions = ({ url, key, timeoutSeconds, maxRetries }: Connection) => ({
  apiKey: key,
  baseURL: url,
  timeout: Math.ceil(1000 * timeoutSeconds),
  maxRetries,
  fetch: fetchWholeReply(timeoutSeconds),
  logLevel: "off" as const,
});

/** Returns the request body: `fields`, overridden by `overrides`, without fields that are null or undefined. */
export function requestBody(
  fields: Readonly<Record<string, unknown>>,
  overrides: Readonly<Record<string, unknown>>,
): Record<string, unknown> {
  return Object.fromEntries(
    Object.entries({ ...fields, ...overrides }).filter(([, value]) => value !== undefined && value !== null),
  );
}
