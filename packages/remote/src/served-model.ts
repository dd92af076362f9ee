import {
  PeriodicEvalError,
  type Completion,
  type ErrorDetails,
  type EvaluableModel,
  type Json,
  type Message,
  type Prompt,
  type Sampling,
  type TemplateKwargs,
  type ModelWith,
} from "@periodic-eval/core";
import { canonicalJson } from "@periodic-eval/core/random";
import { checkKeys, isCount, errorMessage, quoteValue } from "@periodic-eval/core/internal";
import { createHash } from "node:crypto";
import pLimit from "p-limit";
import { checkLimits } from "./limits.ts";
import { withOwnRandomness } from "./own-randomness.ts";
import { orAborted } from "./or-aborted.ts";
import { reasonOf, withoutKey } from "./told-reason.ts";
import { toldCall } from "./told-requests.ts";
import { wholeReplies } from "./whole-replies.ts";

export interface ServedModelOptions {
  /** The model's name, as its server knows it. */
  readonly model: string;
  /** Where the API is; default: the provider's own, or what its environment variable names. */
  readonly baseUrl?: string;
  /** The environment variable that holds the key; null sends none. */
  readonly apiKeyEnv?: string | null;
  /** For one attempt, its whole reply included; default 60. */
  readonly timeoutSeconds?: number;
  /** After 408, 409, 429, 5xx, a time-out or a broken connection, with back-off or as `Retry-After` says; default 4. */
  readonly maxRetries?: number;
  /** Requests of one call at a time; default 8. */
  readonly concurrency?: number;
  /**
   * Further fields of the request's body, which go before ours; null leaves one out that a model does not take. The
   * identity holds their names and a hash: gateways take keys here.
   */
  readonly body?: { readonly [field: string]: Json };
}

export const servedModelOptionNames = [
  "model",
  "baseUrl",
  "apiKeyEnv",
  "timeoutSeconds",
  "maxRetries",
  "concurrency",
  "body",
] as const satisfies readonly (keyof ServedModelOptions)[];

/** A provider: its names, and how one completion is had. */
export interface Provider {
  /** The function that users call. */
  readonly name: string;
  readonly engine: string;
  readonly defaultUrl: string;
  readonly urlEnv: string;
  readonly keyEnv: string;
  readonly install: string;
  /** Makes the client, when it is first needed: importing one takes a while. */
  connect(connection: Connection): Promise<Complete>;
}

export interface Connection {
  readonly model: string;
  readonly url: string;
  readonly isOwnServer: boolean;
  readonly key: string;
  readonly timeoutSeconds: number;
  readonly maxRetries: number;
  readonly body: { readonly [field: string]: Json };
}

/** How the official clients are made: both take the same options. */
export const clientOptions = ({ url, key, timeoutSeconds, maxRetries }: Connection) => ({
  apiKey: key,
  baseURL: url,
  timeout: Math.ceil(1000 * timeoutSeconds),
  maxRetries,
  fetch: wholeReplies(timeoutSeconds),
  logLevel: "off" as const,
});

/** What a server is asked: it renders the chat. */
export interface ServedChat {
  /** The system prompt is the first, where there is one. */
  readonly messages: readonly Message[];
  /** Null where the prompt has none. */
  readonly templateKwargs: TemplateKwargs | null;
}

/** Asks once, retries included. Throws what the client throws, and PeriodicEvalError for what it cannot ask. */
export type Complete = (chat: ServedChat, sampling: Sampling, signal: AbortSignal) => Promise<Completion>;

/** A model behind a provider's API. The key is in no error, log or identity. */
export function servedModel(
  provider: Provider,
  options: ServedModelOptions,
): EvaluableModel & ModelWith<"generate"> {
  checkOptions(provider, options);
  const { model, timeoutSeconds = 60, maxRetries = 4, concurrency = 8, body = {} } = options;
  const where = `${provider.name}("${model}")`;
  const url = urlOf(provider, where, options.baseUrl);
  const isOwnServer = new URL(url).host !== new URL(provider.defaultUrl).host;
  const key = keyOf(provider, where, options.apiKeyEnv, isOwnServer);
  let client: Promise<Complete> | null = null;
  const limit = pLimit(concurrency);

  async function complete(prompt: Prompt, sampling: Sampling, signal: AbortSignal): Promise<Completion> {
    signal.throwIfAborted();
    const chat = chatOf(where, prompt);
    client ??= provider
      .connect({ model, url, isOwnServer, key: key ?? "none", timeoutSeconds, maxRetries, body })
      .catch((error: unknown) => {
        client = null;
        throw notInstalled(where, provider.install, error);
      });
    const ask = await client;
    try {
      const said = await orAborted(signal, ask(chat, sampling, signal));
      return { ...said, text: withoutKey(said.text, key) };
    } catch (error) {
      signal.throwIfAborted();
      if (PeriodicEvalError.is(error)) throw error;
      throw failed(where, provider, error, key);
    }
  }

  return {
    identity: {
      name: model,
      engine: isOwnServer ? `${provider.engine}-compatible at ${new URL(url).host}` : provider.engine,
      dtype: "unknown",
      weights: null,
      adapter: null,
      ...(Object.keys(body).length > 0 && { details: { body: toldOf(body) } }),
    },
    contextLength: null,
    generate: (requests, options) =>
      toldCall(options, async ({ signal, countTokens, send }) => {
        const completions = requests.map(({ prompt, sampling }) =>
          limit(() => withOwnRandomness(() => send(() => complete(prompt, sampling, signal)))),
        );
        const done = await Promise.all(completions);
        for (const { usage } of done) if (usage) countTokens?.(usage.inputTokens + usage.outputTokens);
        return done;
      }),
  };
}

/** What tells two bodies apart and gives nothing of them away; hence SHA-256, which cannot be undone. */
const toldOf = (body: { readonly [field: string]: Json }) => ({
  fields: Object.keys(body).sort(),
  hash: `sha256:${createHash("sha256").update(canonicalJson(body)).digest("hex")}`,
});

function checkOptions(provider: Provider, options: ServedModelOptions): void {
  checkKeys(provider.name, options, servedModelOptionNames);
  const { model, concurrency, body } = options;
  const wrong = (option: string, got: unknown, expected: string, fix: string) =>
    new PeriodicEvalError({
      code: "config",
      where: `${provider.name}.${option}`,
      got: quoteValue(got),
      expected,
      fix,
    });
  if (typeof model !== "string" || model.trim() === "")
    throw wrong("model", model, "a model's name", "Give the name that the server knows.");
  checkLimits(provider.name, options, { timeoutSeconds: 60, maxRetries: 4 });
  if (concurrency !== undefined && !isCount(concurrency, 1))
    throw wrong("concurrency", concurrency, "a whole number of 1 or more", "Leave it out for 8.");
  if (body !== undefined && (typeof body !== "object" || body === null || Array.isArray(body)))
    throw wrong("body", body, "an object of fields", "Leave it out.");
}

export const fromEnvironment = (name: string): string | null => process.env[name]?.trim() || null;

function urlOf({ defaultUrl, urlEnv }: Provider, where: string, given: string | undefined): string {
  const text = given ?? fromEnvironment(urlEnv) ?? defaultUrl;
  const url = URL.canParse(text) ? new URL(text) : null;
  if (url !== null && /^https?:$/.test(url.protocol) && url.username === "" && url.password === "")
    return text;
  // What was given is not shown: there may be a password in it.
  throw new PeriodicEvalError({
    code: "config",
    where: given === undefined ? urlEnv : `${where}.baseUrl`,
    got: "what is no http address, or holds a user's name",
    expected: `an address such as ${defaultUrl}`,
    fix: "Put the key into an environment variable, and its name into apiKeyEnv.",
  });
}

/** Null where none is wanted: a server of one's own often asks for none. */
function keyOf(
  { keyEnv }: Provider,
  where: string,
  named: string | null | undefined,
  isOwnServer: boolean,
): string | null {
  if (named === null) return null;
  const variable = named ?? keyEnv;
  const key = fromEnvironment(variable);
  if (key !== null || (isOwnServer && named === undefined)) return key;
  throw new PeriodicEvalError({
    code: "config",
    where,
    got: `no key in the environment variable ${variable}`,
    expected: "one",
    fix: `Set ${variable}; keys are read from nowhere else.`,
  });
}

/**
 * A prompt as a server is asked it.
 *
 * @throws PeriodicEvalError `model` for a prompt that only a model in memory can be asked.
 */
export function chatOf(where: string, prompt: Prompt): ServedChat {
  if (!("messages" in prompt))
    throw new PeriodicEvalError({
      code: "model",
      where,
      got: "text" in prompt ? "a raw text" : "token ids",
      expected: "messages: the server renders the chat",
      fix: "Ask a chat model by messages.",
    });
  const { messages, system = "omit", templateKwargs = {} } = prompt;
  if (system === "no_system_block")
    throw new PeriodicEvalError({
      code: "model",
      where,
      got: 'the system prompt "no_system_block"',
      expected: '"omit" or a text: the server renders the chat, and does not tell what its template adds',
      fix: 'Write "omit", or measure the model in memory.',
    });
  return {
    messages: typeof system === "object" ? [{ role: "system", content: system.text }, ...messages] : messages,
    templateKwargs: Object.keys(templateKwargs).length === 0 ? null : templateKwargs,
  };
}

/** Of an API that takes no variables of a chat template. */
export function noTemplate(where: string, kwargs: TemplateKwargs, api: string): PeriodicEvalError {
  return new PeriodicEvalError({
    code: "model",
    where,
    got: `variables of a chat template (${Object.keys(kwargs).join(", ")})`,
    expected: `none: ${api} renders chats by no template of the caller's`,
    fix: "Leave chatTemplate.kwargs out, or measure through a server that takes chat_template_kwargs, such as vLLM.",
  });
}

function notInstalled(where: string, install: string, error: unknown): PeriodicEvalError {
  return new PeriodicEvalError({
    code: "config",
    where,
    got: `no usable package ${install} (${errorMessage(error).split("\n")[0]})`,
    expected: "the provider's client",
    fix: `Run \`npm i ${install}\`.`,
  });
}

/** No cause: the client's errors hold what the server sent. */
function failed(where: string, { keyEnv }: Provider, error: unknown, key: string | null): PeriodicEvalError {
  const status = error instanceof Error && "status" in error ? error.status : undefined;
  const fixes: Readonly<Record<number, string>> = {
    401: `Check the key in ${keyEnv}, or name its variable by apiKeyEnv.`,
    403: `Check what the key in ${keyEnv} may use.`,
    404: "Check the model's name and the base URL.",
    429: "Lower concurrency, or raise the limits of the account.",
  };
  const details: ErrorDetails = {
    code: "model",
    where,
    got: reasonOf(error, key),
    expected: "a completion",
    fix:
      fixes[status as number] ??
      (status === undefined || (status as number) >= 500
        ? "See that the server is up and can be reached, then ask again."
        : "Check what the model takes; body: { field: null } leaves a field out."),
  };
  return new PeriodicEvalError(details);
}
