import { configError, parseOptions, quoteValue, integerFromZero } from "@periodic-eval/contracts/options";
import { fetchBounded, maskSecret } from "@periodic-eval/data";
import pRetry, { AbortError } from "p-retry";
import * as z from "zod";
import { type BenchmarkStore, reasonOf } from "./store.ts";

export interface HttpStoreOptions {
  /** The address: each value is put at `<url>/<name>`. */
  readonly url: string;
  /** The environment variable with the bearer token. Default: no token is sent. */
  readonly tokenEnv?: string;
  /** Retries after 408, 429, 5xx, a timeout or a broken connection, with back-off from half a second; default 4. */
  readonly maxRetries?: number;
  /** Timeout of one attempt; default 30, at most a day. */
  readonly timeoutSeconds?: number;
}

const timeout = "a number above 0, at most 86400 (a day)";

const optionsSchema = z.strictObject({
  // `checkUrl` checks it, and does not quote it.
  url: z.unknown().optional(),
  tokenEnv: z.string().optional(),
  maxRetries: integerFromZero.optional(),
  timeoutSeconds: z.number(timeout).gt(0, timeout).max(86_400, timeout).optional(),
} satisfies Record<keyof HttpStoreOptions, z.ZodType>);

/**
 * Returns a store that sends each value to a server as JSON. The token comes from the environment; it appears in no error, and
 * redirects are not followed.
 *
 * @throws PeriodicEvalError `config` for a wrong option, or if the token's variable is not set.
 */
export function httpStore(options: HttpStoreOptions): BenchmarkStore {
  parseOptions(where, optionsSchema, options);
  const { url, tokenEnv, maxRetries = 4, timeoutSeconds = 30 } = options;
  checkUrl(url);

  const token = tokenEnv === undefined ? null : tokenOf(tokenEnv);
  const base = url.replace(/\/+$/, "");
  const name = `PUT ${base}`;

  return {
    name,
    async put(key, value, { signal }) {
      const init = {
        method: "PUT",
        body: JSON.stringify(value),
        redirect: "error" as const,
        headers: {
          "content-type": "application/json",
          ...(token !== null && { authorization: `Bearer ${token}` }),
        },
        signal,
      };
      const send = async () => {
        const { response } = await fetchBounded(`${base}/${key}`, init, { timeoutSeconds });
        const { ok, status, statusText } = response;
        if (ok) return;
        const failure = new Error(`the server answered ${status} ${statusText}`.trim());
        throw status === 408 || status === 429 || status >= 500 ? failure : new AbortError(failure);
      };
      const limits = { retries: maxRetries, minTimeout: 500, maxTimeout: 30_000, signal };
      await pRetry(send, limits).catch((error: unknown) => {
        // A message of `fetch` or of the server may quote the token.
        throw new Error(maskSecret(reasonOf(error), token));
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
  // The message does not quote the value, because it may contain a password.
  throw configError({
    where,
    path: ["url"],
    got: "a value that is not a plain http address (without user name and query)",
    expected: "an address such as https://results.example.org/runs",
    fix: "Put the token into an environment variable, and its name into tokenEnv.",
  });
}

function tokenOf(variable: string): string {
  const token = process.env[variable]?.trim();
  if (token !== undefined && token !== "") return token;
  throw configError({
    where,
    path: ["tokenEnv"],
    got: `no environment variable ${quoteValue(variable)}`,
    expected: "a variable that contains a bearer token",
    fix: "Set it, or leave tokenEnv out.",
  });
}

const where = "httpStore options";
