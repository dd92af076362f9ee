import { PeriodicEvalError } from "@periodic-eval/core";
import {
  abbreviated,
  changedError,
  configError,
  parseOptions,
  shortMessage,
} from "@periodic-eval/contracts/options";
import { maskSecret, maxReplyBytes } from "@periodic-eval/data";
import ky, { HTTPError, type KyInstance } from "ky";
import * as z from "zod";
import { fetchWholeReply } from "./fetch-whole-reply.ts";
import { at, isString } from "./reply-fields.ts";
import { requestLimits } from "./request-limits.ts";
import { describeFailure, environmentValue, parseAddress, parseMasked } from "./secrets.ts";

export interface JsonServiceOptions {
  /** The address: `http://127.0.0.1:8000`, with or without `/v1` at its end. */
  readonly url: string;
  /** The environment variable that holds the bearer token. If it is not set, or null, no token is sent. */
  readonly tokenEnv: string | null;
  /** Time limit of one attempt, including the body of the reply. Default 290, because Node's `fetch` gives up at 300. */
  readonly timeoutSeconds?: number;
  /**
   * Retries after 408, 429, 500, 502, 503, 504, a timeout or a broken connection, after the time in `Retry-After` or with
   * back-off. Default 8, within 40 seconds, so that a service can restart. A `Retry-After` of more than a minute is not retried.
   */
  readonly maxRetries?: number;
}

const where = "jsonService options";

/** A batch of completions with their log-probs is larger than a judge's reply. */
const maxServiceReplyBytes = 4 * maxReplyBytes;

const optionsSchema = z.strictObject({
  url: z.string(),
  tokenEnv: z.string().nullable(),
  ...requestLimits({ timeoutSeconds: 290, maxRetries: 8 }),
} satisfies Record<keyof JsonServiceOptions, z.ZodType>);

export interface JsonReply {
  readonly status: number;
  /** The parsed JSON; null if the body is not JSON. */
  readonly body: unknown;
}

/** A client of a service that reads and writes JSON. No error and no reply contains its token. */
export interface JsonService {
  /** The address without `/v1`. */
  readonly url: string;
  /**
   * Sends a request and returns the reply, even one with an error status. Uses POST if `body` is given, otherwise GET.
   *
   * @param path Relative to `url`.
   * @param options.isJson False: a successful reply need not be JSON. Default true.
   * @throws PeriodicEvalError `config` if the service rejects the token; `model` if all attempts failed.
   */
  reply(
    path: string,
    body: unknown,
    signal: AbortSignal,
    options?: { readonly isJson?: boolean },
  ): Promise<JsonReply>;
  /**
   * Sends the same request as `reply` and returns the body of a successful reply.
   *
   * @throws PeriodicEvalError as `reply`; `config` for any other error status.
   */
  ask(path: string, body: unknown, signal: AbortSignal): Promise<unknown>;
}

/** The last attempt of a failed request. */
export interface FailedAttempt {
  /** Null if there was no reply. */
  readonly status: number | null;
  /** Whether the same request may succeed later. */
  readonly mayRetry: boolean;
  /** Seconds to wait before a retry, as the server asked. */
  readonly waitSeconds: number | null;
}

const failedAttempts = new WeakMap<PeriodicEvalError, FailedAttempt>();

/** Returns the last attempt of a request that failed with this error; null for any other error. */
export const failedAttemptOf = (error: unknown): FailedAttempt | null =>
  failedAttempts.get(error as PeriodicEvalError) ?? null;

/** Returns the same error with one more sentence of advice. */
export function withAdvice(error: PeriodicEvalError, advice: string): PeriodicEvalError {
  const advised = changedError(error, { fix: `${error.fix} ${advice}` });
  const failed = failedAttempts.get(error);
  if (failed !== undefined) failedAttempts.set(advised, failed);
  return advised;
}

/** Whether `Retry-After` is too long (`fetchWholeReply` marks these replies), or the server forbids a retry. */
const forbidsRetry = (error: Error): error is HTTPError =>
  error instanceof HTTPError && error.response.headers.get("x-should-retry") === "false";

/** Statuses after which the same request may succeed. */
const transientStatuses = [408, 429, 500, 502, 503, 504];

/**
 * Creates a client of a service. Retries may deliver a request more than once, so send only requests that can be repeated.
 *
 * @throws PeriodicEvalError `config` for a wrong option.
 */
export function jsonService(options: JsonServiceOptions): JsonService {
  const { tokenEnv, timeoutSeconds, maxRetries } = parseOptions(where, optionsSchema, options);
  const url = parseUrl(options.url);
  const token = tokenEnv === null ? null : environmentValue(tokenEnv);
  const client = connect(url, token, maxRetries);
  const fetchReply = (isJson: boolean) =>
    fetchWholeReply(timeoutSeconds, maxServiceReplyBytes, { redirect: "manual", isJson });

  async function reply(
    path: string,
    body: unknown,
    signal: AbortSignal,
    { isJson = true }: { readonly isJson?: boolean } = {},
  ): Promise<JsonReply> {
    signal.throwIfAborted();
    const endpoint = `${url}/${path}`;
    try {
      // ky puts the signal into the Request, where `fetchReply` does not find it.
      const send: typeof fetch = (request, init) => fetchReply(isJson)(request, { ...init, signal });
      const common = { fetch: send, signal };
      const response = await (body === undefined
        ? client.get(path, common)
        : client.post(path, { ...common, json: body }));
      return { status: response.status, body: maskedOrNull(await response.text(), token) };
    } catch (error) {
      signal.throwIfAborted();
      if (!(error instanceof HTTPError)) {
        const failed = { status: null, mayRetry: true, waitSeconds: null };
        throw unavailable(endpoint, describeFailure(error, token), failed);
      }
      const { status, headers } = error.response;
      const parsed = maskedOrNull(await error.response.text(), token);
      const wait = forbidsRetry(error) ? error.response.headers.get("retry-after") : null;
      const reason = `${status}${messageIn(parsed)}${wait === null ? "" : ` (Retry-After: ${abbreviated(maskSecret(wait, token))})`}`;
      if (status === 401 || status === 403)
        throw rejectedToken(endpoint, { status, reason }, tokenEnv, token !== null);
      const waitSeconds = Number(headers.get("retry-after")) || null;
      if (transientStatuses.includes(status))
        throw unavailable(endpoint, reason, { status, mayRetry: !forbidsRetry(error), waitSeconds });
      if (status >= 300 && status < 400)
        throw unavailable(endpoint, `${status}, a redirect, which would send the token elsewhere`, {
          status,
          mayRetry: false,
          waitSeconds: null,
        });
      return { status, body: parsed };
    }
  }

  return {
    url,
    reply,
    async ask(path, body, signal) {
      const { status, body: parsed } = await reply(path, body, signal);
      if (status < 300) return parsed;
      throw new PeriodicEvalError({
        code: "config",
        where: `${url}/${path}`,
        got: describeFailure(new Error(`${status}${messageIn(parsed)}`), token),
        expected: "a successful reply",
        fix: "Correct the request as the service's message says.",
        detail: { kind: "http", status },
      });
    },
  };
}

const connect = (url: string, token: string | null, maxRetries: number): KyInstance =>
  ky.create({
    prefixUrl: url,
    timeout: false,
    ...(token !== null && { headers: { authorization: `Bearer ${token}` } }),
    retry: {
      limit: maxRetries,
      methods: ["get", "post"],
      statusCodes: transientStatuses,
      backoffLimit: 10_000,
      maxRetryAfter: 60_000,
      // Without this, ky would wait for `maxRetryAfter` and then retry too early.
      shouldRetry: ({ error }) => (forbidsRetry(error) ? false : undefined),
      retryOnTimeout: true,
    },
  });

function parseUrl(text: string): string {
  const url = parseAddress(text);
  if (url !== null && url.search === "" && url.hash === "")
    return `${url.origin}${url.pathname}`.replace(/(?:\/v1)?\/*$/, "");
  throw configError({
    where,
    path: ["url"],
    got: "an invalid address (not quoted, because it may contain a password)",
    expected: "an address such as http://127.0.0.1:8000, without user name and parameters",
    fix: "Correct the address, and put the token into an environment variable.",
  });
}

/** Parses JSON and masks the token; null if the text is not JSON. */
function maskedOrNull(text: string, token: string | null): unknown {
  try {
    return parseMasked(text, token);
  } catch {
    return null;
  }
}

/** Returns `: <message>` from an error body in the format of OpenAI's servers or FastAPI, shortened; empty if it has no message. */
function messageIn(body: unknown): string {
  const message = [at(body, "error", "message"), at(body, "detail"), at(body, "message")].find(isString);
  return message === undefined ? "" : `: ${shortMessage(message)}`;
}

function unavailable(endpoint: string, got: string, failed: FailedAttempt): PeriodicEvalError {
  const error = new PeriodicEvalError({
    code: "model",
    where: endpoint,
    got,
    expected: "a reply",
    fix: "Check that the service runs and can be reached, then run again.",
  });
  failedAttempts.set(error, failed);
  return error;
}

const rejectedToken = (
  endpoint: string,
  { status, reason }: { readonly status: number; readonly reason: string },
  tokenEnv: string | null,
  isSet: boolean,
): PeriodicEvalError =>
  new PeriodicEvalError({
    code: "config",
    where: endpoint,
    got: reason,
    expected: "a token that the service accepts",
    fix:
      tokenEnv === null
        ? "Name the environment variable that holds a token."
        : isSet
          ? `Correct the token in ${tokenEnv}.`
          : `Set ${tokenEnv}; tokens are read from the environment only.`,
    detail: { kind: "http", status },
  });
