import pLimit from "p-limit";
import * as z from "zod";
import { AsyncLocalStorage } from "node:async_hooks";
import { createHash } from "node:crypto";
import { configError, errorMessage, parseOptions } from "@periodic-eval/contracts/options";
import {
  type Completion,
  type Json,
  type Sampling,
  PeriodicEvalError,
  type EvaluableModel,
  type ModelWith,
  type Prompt,
} from "@periodic-eval/core";
import { canonicalJson } from "@periodic-eval/core/random";
import { divertMathRandom } from "@periodic-eval/core/session";
import { abortable } from "@periodic-eval/store";
import { fetchWholeReply } from "../http/fetch-whole-reply.ts";
import { totalTokens } from "../http/reply-fields.ts";
import { concurrentCallsFor, servedOptions } from "../http/request-limits.ts";
import { describeFailure, environmentValue, missingKey, parseAddress } from "../http/secrets.ts";
import { trackCall } from "../http/track-requests.ts";
import { type ServedChat, chatOf } from "./chat-message.ts";

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

interface Connection {
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
type Complete = (chat: ServedChat, sampling: Sampling, signal: AbortSignal) => Promise<Completion>;

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

const optionsSchema = z.strictObject({
  ...servedOptions({ timeoutSeconds: 60, maxRetries: 4 }),
  baseUrl: z.string().optional(),
  body: z.record(z.string(), z.unknown(), "an object of request fields").optional(),
} satisfies Record<keyof ServedModelOptions, z.ZodType>);

/** Returns a model behind a provider's API. No error, log line or identity contains the API key. */
export function servedModel(
  provider: Provider,
  options: ServedModelOptions,
): EvaluableModel & ModelWith<"generate"> {
  const optionsWhere = `${provider.name} options`;
  const { model, timeoutSeconds, maxRetries, concurrency } = parseOptions(
    optionsWhere,
    optionsSchema,
    options,
  );
  const { body = {} } = options;
  const where = `${provider.name}("${model}")`;
  const url = resolveUrl(provider, optionsWhere, options.baseUrl);
  const isOtherHost = new URL(url).host !== new URL(provider.defaultUrl).host;
  const key = readKey(provider, optionsWhere, options.apiKeyEnv, isOtherHost);
  let client: Promise<Complete> | null = null;
  const limit = pLimit(concurrency);

  async function complete(prompt: Prompt, sampling: Sampling, signal: AbortSignal): Promise<Completion> {
    signal.throwIfAborted();
    const chat = chatOf(where, prompt);
    client ??= provider
      .connect({ model, url, isOtherHost, key: key ?? "none", timeoutSeconds, maxRetries, body })
      .catch((error: unknown) => {
        client = null;
        throw missingPackage(where, provider.packageName, error);
      });
    const request = await client;
    try {
      const completion = await abortable(signal, request(chat, sampling, signal));
      checkTextLength(where, completion, sampling);
      return completion;
    } catch (error) {
      signal.throwIfAborted();
      if (PeriodicEvalError.is(error)) throw error;
      throw requestFailed(where, provider, error, key);
    }
  }

  return {
    identity: {
      name: model,
      engine: isOtherHost ? `${provider.engine}-compatible at ${new URL(url).host}` : provider.engine,
      dtype: "unknown",
      weights: null,
      adapter: null,
      ...(Object.keys(body).length > 0 && { details: { body: digestBody(body) } }),
    },
    contextLength: null,
    isServed: true,
    concurrentCalls: concurrentCallsFor(concurrency),
    generate: (requests, callOptions) =>
      trackCall(callOptions, async ({ signal, countTokens, send }) => {
        const pending = requests.map(({ prompt, sampling }) =>
          limit(() => withSeparateRandomness(() => send(() => complete(prompt, sampling, signal)))),
        );
        const completions = await Promise.all(pending);
        for (const tokens of completions.map(totalTokens)) if (tokens !== null) countTokens?.(tokens);
        return completions;
      }),
  };
}

/** Maximum characters per token of any tokenizer, and a minimum, because `body` can override the number of tokens. */
const [charactersPerToken, minimumCharacters] = [256, 2 ** 16];

/** Checks that the text has about the requested length. Callers keep many texts in memory, and a reply may have megabytes. */
function checkTextLength(where: string, { text }: Completion, { maxNewTokens }: Sampling): void {
  const most = Math.max(minimumCharacters, charactersPerToken * maxNewTokens);
  if (text.length <= most) return;
  throw new PeriodicEvalError({
    code: "model",
    where,
    got: `a completion of ${text.length} characters`,
    expected: `at most ${most}, for ${maxNewTokens} tokens`,
    fix: "Check the server: it ignores the maximum number of tokens.",
  });
}

/** Returns the names of the body's fields and a hash that distinguishes two bodies. SHA-256 does not reveal the values. */
const digestBody = (body: { readonly [field: string]: Json }) => ({
  fields: Object.keys(body).sort(),
  hash: `sha256:${createHash("sha256").update(canonicalJson(body)).digest("hex")}`,
});

const randomStream = new AsyncLocalStorage<() => number>();
const currentStream = () => randomStream.getStore();

/**
 * Runs `work` with a separate `Math.random`, even after an `await`. Clients draw request ids and retry jitter from it. Training,
 * which may run at the same time, draws its dropout from the global one.
 */
function withSeparateRandomness<T>(work: () => Promise<T>): Promise<T> {
  divertMathRandom(currentStream);
  return randomStream.run(() => crypto.getRandomValues(new Uint32Array(1))[0]! / 2 ** 32, work);
}

function resolveUrl({ defaultUrl, urlEnv }: Provider, where: string, baseUrl: string | undefined): string {
  const text = baseUrl ?? environmentValue(urlEnv) ?? defaultUrl;
  if (parseAddress(text) !== null) return text;
  throw configError({
    ...(baseUrl === undefined ? { where: urlEnv } : { where, path: ["baseUrl"] }),
    got: "an invalid address (not quoted, because it may contain a password)",
    expected: `an address such as ${defaultUrl}, without a user name`,
    fix: "Put the key into an environment variable, and the variable's name into apiKeyEnv.",
  });
}

/** Returns the API key; null for `apiKeyEnv: null`, or on another host if the provider's default variable is not set. */
function readKey(
  { keyEnv }: Provider,
  where: string,
  apiKeyEnv: string | null | undefined,
  isOtherHost: boolean,
): string | null {
  if (apiKeyEnv === null) return null;
  const variable = apiKeyEnv ?? keyEnv;
  const key = environmentValue(variable);
  if (key !== null || (isOtherHost && apiKeyEnv === undefined)) return key;
  throw missingKey(where, variable);
}

function missingPackage(where: string, packageName: string, cause: unknown): PeriodicEvalError {
  return new PeriodicEvalError({
    code: "config",
    where,
    got: `no usable package ${packageName} (${errorMessage(cause).split("\n")[0]})`,
    expected: "the provider's client",
    fix: `Run \`npm i ${packageName}\`.`,
  });
}

/** Returns the error after the last attempt. It has no cause, because a client's error contains the server's reply. */
function requestFailed(
  where: string,
  { keyEnv }: Provider,
  error: unknown,
  key: string | null,
): PeriodicEvalError {
  const status = error instanceof Error && "status" in error ? error.status : undefined;
  const fixes: Readonly<Record<number, string>> = {
    401: `Check the key in ${keyEnv}, or name another variable in apiKeyEnv.`,
    403: `Check the permissions of the key in ${keyEnv}.`,
    404: "Check the model's name and the base URL.",
    429: "Lower concurrency, or raise the limits of the account.",
  };
  return new PeriodicEvalError({
    code: "model",
    where,
    got: describeFailure(error, key),
    expected: "a completion",
    fix:
      fixes[status as number] ??
      (status === undefined || (status as number) >= 500
        ? "Check that the server runs and can be reached, then try again."
        : "Check which fields the model accepts; body: { field: null } removes a field."),
  });
}
