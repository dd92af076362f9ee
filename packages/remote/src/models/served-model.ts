import {
  PeriodicEvalError,
  type Completion,
  type EvaluableModel,
  type Json,
  type ModelWith,
  type Prompt,
  type Sampling,
} from "@periodic-eval/core";
import { configError, errorMessage, parseOptions } from "@periodic-eval/contracts/options";
import { canonicalJson } from "@periodic-eval/core/random";
import { divertMathRandom } from "@periodic-eval/core/session";
import { AsyncLocalStorage } from "node:async_hooks";
import { createHash } from "node:crypto";
import pLimit from "p-limit";
import * as z from "zod";
import { abortable } from "@periodic-eval/store";
import { totalTokens } from "../http/reply-fields.ts";
import { concurrentCallsFor, requestLimits } from "../http/request-limits.ts";
import { describeFailure, environmentValue, parseAddress } from "../http/secrets.ts";
import { trackCall } from "../http/track-requests.ts";
import type { Complete, Provider, ServedModelOptions } from "./provider.ts";
import { chatOf } from "./served-chat.ts";

const positiveInteger = "a positive integer";
const optionsSchema = z.strictObject({
  model: z
    .string("a model name")
    .regex(/\S/, "a model name")
    .meta({ fix: "Give the model's name on the server." }),
  baseUrl: z.string().optional(),
  apiKeyEnv: z.string("the name of an environment variable, or null").nullable().optional(),
  ...requestLimits({ timeoutSeconds: 60, maxRetries: 4 }),
  concurrency: z.int(positiveInteger).positive(positiveInteger).default(8),
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
  throw configError({
    where,
    path: ["apiKeyEnv"],
    got: `no value in the environment variable ${variable}`,
    expected: "an API key",
    fix: `Set ${variable}; keys are read from the environment only.`,
  });
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
