import { PeriodicEvalError } from "@periodic-eval/core";
import { checkKeys, checkWord, isCount, quoteValue } from "@periodic-eval/core/internal";
import pRetry, { AbortError } from "p-retry";
import type { BenchmarkStore } from "./store.ts";

export interface HttpStoreOptions {
  /** Where to; `PUT` adds a slash and the value's name. */
  readonly url: string;
  /** `PUT` (default) sends the value to its own address, `POST` sends `{ name, value }` to `url`. */
  readonly method?: "PUT" | "POST";
  /** The environment variable that holds the bearer token; left out: none is sent. */
  readonly tokenEnv?: string;
  /** After 408, 429, 5xx, a time-out or a broken connection, with back-off from half a second; default 4. */
  readonly maxRetries?: number;
  /** For one attempt; default 30. */
  readonly timeoutSeconds?: number;
}

/**
 * Sends each value to a server as JSON. The token is read from the environment, is in no error, and follows no redirect.
 *
 * @throws PeriodicEvalError `config` for a wrong option, or no token where one is named.
 */
export function httpStore(options: HttpStoreOptions): BenchmarkStore {
  checkKeys("httpStore", options, ["url", "method", "tokenEnv", "maxRetries", "timeoutSeconds"]);
  const { url, method = "PUT", tokenEnv, maxRetries = 4, timeoutSeconds = 30 } = options;
  checkUrl(url);
  checkWord("httpStore.method", method, ["PUT", "POST"]);
  if (!isCount(maxRetries)) throw wrong("maxRetries", quoteValue(maxRetries), "a whole number of 0 or more");
  if (!(timeoutSeconds > 0 && timeoutSeconds <= 86_400))
    throw wrong("timeoutSeconds", quoteValue(timeoutSeconds), "a number over 0, at most a day");
  const token = tokenEnv === undefined ? null : tokenOf(tokenEnv);
  const base = url.replace(/\/+$/, "");
  const name = `${method} ${base}`;

  async function send(address: string, body: string, signal: AbortSignal): Promise<void> {
    const response = await fetch(address, {
      method,
      body,
      redirect: "error",
      headers: {
        "content-type": "application/json",
        ...(token !== null && { authorization: `Bearer ${token}` }),
      },
      signal: AbortSignal.any([signal, AbortSignal.timeout(Math.ceil(1000 * timeoutSeconds))]),
    });
    await response.body?.cancel();
    if (response.ok) return;
    const said = `the server answered ${response.status}${response.statusText === "" ? "" : ` ${response.statusText}`}`;
    const mayPass = response.status === 408 || response.status === 429 || response.status >= 500;
    throw mayPass ? new Error(said) : new AbortError(said);
  }

  return {
    name,
    async put(key, value, { signal }) {
      const [address, body] =
        method === "PUT"
          ? [`${base}/${key}`, JSON.stringify(value)]
          : [base, JSON.stringify({ name: key, value })];
      await pRetry(() => send(address, body, signal), {
        retries: maxRetries,
        minTimeout: 500,
        maxTimeout: 30_000,
        signal,
      });
    },
  };
}

function checkUrl(text: unknown): void {
  const url = typeof text === "string" && URL.canParse(text) ? new URL(text) : null;
  const isPlain =
    url !== null &&
    /^https?:$/.test(url.protocol) &&
    url.username === "" &&
    url.search === "" &&
    url.hash === "";
  if (isPlain) return;
  // What was given is not shown: there may be a password in it.
  throw wrong(
    "url",
    "what is no http address, or holds a user's name or a query",
    "an address such as https://results.example.org/runs",
    "Put the token into an environment variable, and its name into tokenEnv.",
  );
}

function tokenOf(variable: string): string {
  const token = process.env[variable]?.trim();
  if (token !== undefined && token !== "") return token;
  const expected = "a bearer token in it";
  throw wrong(
    "tokenEnv",
    `no environment variable ${quoteValue(variable)}`,
    expected,
    "Set it, or leave tokenEnv out.",
  );
}

const wrong = (option: string, got: string, expected: string, fix = "Correct it, or leave it out.") =>
  new PeriodicEvalError({ code: "config", where: `httpStore.${option}`, got, expected, fix });
