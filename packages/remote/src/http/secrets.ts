import { configError, errorMessage } from "@periodic-eval/contracts/options";
import { maskSecret } from "@periodic-eval/data";

const maximumReasonLength = 300;

/** Returns the trimmed value of an environment variable; null if it is unset or blank. */
export const environmentValue = (name: string): string | null => process.env[name]?.trim() || null;

/** Returns the error for the option `apiKeyEnv` if its variable has no value. */
export const missingKey = (where: string, variable: string) =>
  configError({
    where,
    path: ["apiKeyEnv"],
    got: `no value in the environment variable ${variable}`,
    expected: "an API key",
    fix: `Set ${variable}; keys are read from the environment only.`,
  });

/** Parses an http(s) address that has no user name and no password; null for any other string. */
export function parseAddress(text: string): URL | null {
  const url = URL.canParse(text) ? new URL(text) : null;
  if (url === null || !/^https?:$/.test(url.protocol)) return null;
  return url.username === "" && url.password === "" ? url : null;
}

/**
 * Returns the messages of an error and its causes, at most 300 characters. Masks the secret before cutting the text: a
 * part of the secret at the cut would no longer match.
 */
export function describeFailure(error: unknown, secret: string | null): string {
  const parts: string[] = [];
  for (let at: unknown = error; at instanceof Error && parts.length < 4; at = at.cause) {
    const message = at.message.replace(/\.$/, "");
    if (message !== "" && !parts.includes(message)) parts.push(message);
  }
  const reason = maskSecret(parts.length === 0 ? errorMessage(error) : parts.join(": "), secret);
  return reason.length > maximumReasonLength ? `${reason.slice(0, maximumReasonLength)}…` : reason;
}

/** Returns a JSON value with the secret masked in every string and field name. */
export const maskJson = (value: unknown, secret: string | null): unknown =>
  secret === null ? value : parseMasked(JSON.stringify(value), secret);

/**
 * Parses JSON and masks the secret in every string and field name.
 *
 * @throws SyntaxError for a string that is not JSON; RangeError for very deep JSON.
 */
export function parseMasked(text: string, secret: string | null): unknown {
  if (!mayHold(text, secret)) return JSON.parse(text) as unknown;
  return JSON.parse(text, (_, value: unknown) => {
    if (typeof value === "string") return maskSecret(value, secret);
    if (typeof value !== "object" || value === null || Array.isArray(value)) return value;
    return Object.fromEntries(Object.entries(value).map(([name, part]) => [maskSecret(name, secret), part]));
  }) as unknown;
}

/** Whether JSON may hold the secret. Only `\\u` and `\\/` can write it in other ways than `maskSecret` knows. */
const mayHold = (text: string, secret: string | null): boolean =>
  secret !== null && (/\\[u/]/.test(text) || maskSecret(text, secret) !== text);
