import { PeriodicEvalError, type ErrorCode } from "@periodic-eval/core";
import ky, { HTTPError, type KyInstance } from "ky";
import { checkLimits } from "./limits.ts";
import { at, isText } from "./reply-fields.ts";
import { fromEnvironment } from "./served-model.ts";
import { reasonOf, withoutKey } from "./told-reason.ts";
import { wholeReplies } from "./whole-replies.ts";

export interface JsonServiceOptions {
  /** Where it is: `http://127.0.0.1:8000`, with or without `/v1` behind it. */
  readonly url: string;
  /** The environment variable that holds its token, sent as a bearer where the variable is set. */
  readonly tokenEnv: string;
  /** For one attempt, its whole reply included; default 290: Node's own `fetch` gives up at 300. */
  readonly timeoutSeconds?: number;
  /**
   * After 408, 429, 5xx, a time-out or a broken connection, with back-off or as `Retry-After` says; default 8,
   * within 40 seconds: a service that is started again is waited for. One that asks for more than a minute is not.
   */
  readonly maxRetries?: number;
}

export interface JsonReply {
  readonly status: number;
  /** Null where it is no JSON. */
  readonly body: unknown;
}

/** A service that takes and gives JSON. Its token is in no error and in nothing that it says back. */
export interface JsonService {
  /** Without `/v1`. */
  readonly url: string;
  /**
   * What it answers to a path behind the address, refusals included; a POST where there is a body, else a GET.
   *
   * @throws PeriodicEvalError `config` where it refuses the token; `model` once all attempts have failed.
   */
  reply(path: string, body: unknown, signal: AbortSignal): Promise<JsonReply>;
  /**
   * The same, where it does as asked.
   *
   * @throws PeriodicEvalError also `config` with its reason for any other refusal, or the code that the service tells.
   */
  ask(path: string, body: unknown, signal: AbortSignal): Promise<unknown>;
}

/** What asks for a longer wait than is waited, as `wholeReplies` marks it, or is marked so by its server. */
const isToBeAskedLater = (error: Error): error is HTTPError =>
  error instanceof HTTPError && error.response.headers.get("x-should-retry") === "false";

/** Statuses after which the same request may be answered. */
const passing = [408, 429, 500, 502, 503, 504];

/**
 * A client of a service at an address. What is asked may arrive more than once: ask for what may be repeated.
 *
 * @throws PeriodicEvalError `config` for what is no address, and for a limit that cannot be kept.
 */
export function jsonService(options: JsonServiceOptions): JsonService {
  const { tokenEnv, timeoutSeconds = 290, maxRetries = 8 } = options;
  checkLimits("jsonService", options, { timeoutSeconds: 290, maxRetries: 8 });
  const url = addressOf(options.url);
  const token = fromEnvironment(tokenEnv);
  const whole = wholeReplies(timeoutSeconds);
  const client: KyInstance = ky.create({
    prefixUrl: url,
    timeout: false,
    ...(token !== null && { headers: { authorization: `Bearer ${token}` } }),
    retry: {
      limit: maxRetries,
      methods: ["get", "post"],
      statusCodes: passing,
      backoffLimit: 10_000,
      maxRetryAfter: 60_000,
      // ky would wait for as long as it may, and ask too early.
      shouldRetry: ({ error }) => (isToBeAskedLater(error) ? false : undefined),
      retryOnTimeout: true,
    },
  });

  async function reply(path: string, body: unknown, signal: AbortSignal): Promise<JsonReply> {
    signal.throwIfAborted();
    const where = `${url}/${path}`;
    try {
      // The signal would go with the request alone, and the time limit with none.
      const send: typeof fetch = (request, init) => whole(request, { ...init, signal });
      const given = { fetch: send, signal };
      const response = await (body === undefined
        ? client.get(path, given)
        : client.post(path, { ...given, json: body }));
      return { status: response.status, body: unkeyed(await response.text(), token) };
    } catch (error) {
      signal.throwIfAborted();
      if (!(error instanceof HTTPError)) throw failed(where, reasonOf(error, token));
      const { status } = error.response;
      const said = unkeyed(await error.response.text(), token);
      const wait = isToBeAskedLater(error) ? error.response.headers.get("retry-after") : null;
      const reason = `${status}${told(said)}${wait === null ? "" : ` (Retry-After: ${withoutKey(wait, token)})`}`;
      if (status === 401 || status === 403) throw refusedToken(where, reason, tokenEnv, token !== null);
      if (passing.includes(status)) throw failed(where, reason);
      return { status, body: said };
    }
  }

  return {
    url,
    reply,
    async ask(path, body, signal) {
      const { status, body: said } = await reply(path, body, signal);
      if (status < 300) return said;
      throw new PeriodicEvalError({
        code: codeOf(said),
        where: `${url}/${path}`,
        got: reasonOf(new Error(`${status}${told(said)}`), token),
        expected: "a service that does as it is asked",
        fix: "See what the service says.",
      });
    },
  };
}

function addressOf(text: string): string {
  const url = URL.canParse(text) ? new URL(text) : null;
  const isPlain = url !== null && /^https?:$/.test(url.protocol);
  if (isPlain && url.username === "" && url.password === "" && url.search === "" && url.hash === "")
    return `${url.origin}${url.pathname}`.replace(/(?:\/v1)?\/*$/, "");
  // What was given is not shown: there may be a password in it.
  throw new PeriodicEvalError({
    code: "config",
    where: "the address of a service",
    got: "what is no http address, or holds a user's name or parameters",
    expected: "an address such as http://127.0.0.1:8000",
    fix: "Correct it; tokens are read from the environment.",
  });
}

/** What a server says, its token taken out before anything else is done with it. */
function unkeyed(text: string, token: string | null): unknown {
  try {
    return JSON.parse(text, (_, value: unknown) => {
      if (isText(value)) return withoutKey(value, token);
      if (typeof value !== "object" || value === null || Array.isArray(value)) return value;
      return Object.fromEntries(Object.entries(value).map(([name, one]) => [withoutKey(name, token), one]));
    }) as unknown;
  } catch {
    return null;
  }
}

/** As OpenAI's servers word errors, or FastAPI's. */
function told(body: unknown): string {
  const message = [at(body, "error", "message"), at(body, "detail"), at(body, "message")].find(isText);
  return message === undefined ? "" : `: ${message}`;
}

/** A service of ours tells errors by their codes; what others refuse was asked wrongly. */
const codeOf = (body: unknown): ErrorCode => {
  const code = at(body, "error", "code");
  return code === "model" || code === "data" || code === "store" ? code : "config";
};

const failed = (where: string, got: string): PeriodicEvalError =>
  new PeriodicEvalError({
    code: "model",
    where,
    got,
    expected: "an answer",
    fix: "See that the service is up and can be reached, then run again.",
  });

const refusedToken = (where: string, reason: string, tokenEnv: string, isSet: boolean): PeriodicEvalError =>
  new PeriodicEvalError({
    code: "config",
    where,
    got: reason,
    expected: "a token that the service takes",
    fix: isSet ? `Correct the one in ${tokenEnv}.` : `Set ${tokenEnv}; tokens are read from nowhere else.`,
  });
