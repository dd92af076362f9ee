import { PeriodicEvalError } from "@periodic-eval/core";
import { errorMessage } from "@periodic-eval/core/internal";
import { modelError } from "../folder/model-error.ts";
import { formatHubId, type HubId } from "./hub-id.ts";

/** Returns the error for a failed request to the hub, with a fix that depends on its status. */
export function requestError(id: HubId, cause: unknown, file?: string): PeriodicEvalError {
  if (PeriodicEvalError.is(cause)) return cause;
  const where = `${formatHubId(id)}${file === undefined ? "" : `, ${file}`} on the hub`;
  const { statusCode: status } = (cause ?? {}) as { readonly statusCode?: unknown };
  if (typeof status !== "number")
    return modelError({
      where,
      got: reasonOf(cause),
      expected: "a response of the hub",
      fix: "No local folder has this name: check the name, the network and HF_ENDPOINT. Models in the cache need no network.",
      cause,
    });
  const detail = errorMessage(cause).split(/\. (?:URL|Request ID): /, 1)[0]!;
  const got = detail.startsWith("Api error") ? `status ${status}` : `status ${status} (${detail})`;
  if (status === 401 || status === 403) {
    const hasToken = Boolean(process.env["HF_TOKEN"]);
    const fix = hasToken
      ? "No local folder has this name: check the name, accept the model's terms on its page, and check that HF_TOKEN may read it."
      : "No local folder has this name: check the name; for a gated or private model accept its terms on its page and set HF_TOKEN to your access token.";
    return modelError({ where, got, expected: "a model that exists and that you may read", fix, cause });
  }
  if (status === 404) {
    const fix = `No local folder has this name either: check the name${id.revision === "main" ? "" : " and the revision"}.`;
    return modelError({ where, got, expected: "a model of this name and revision", fix, cause });
  }
  const fix =
    status === 429 ? "Wait, or set HF_TOKEN: the hub limits the rate of requests." : "Try again later.";
  return modelError({ where, got, expected: "a successful response", fix, cause });
}

/** Returns an error's message with the reason that fetch keeps in its cause: `fetch failed (ECONNREFUSED)`. */
export function reasonOf(error: unknown): string {
  const cause = error instanceof Error ? (error.cause as NodeJS.ErrnoException | undefined) : undefined;
  const reason = cause?.code ?? cause?.message;
  return reason === undefined ? errorMessage(error) : `${errorMessage(error)} (${reason})`;
}

/** Whether a request got no response, so that the cached files are the best available. */
export function isUnreachable(error: unknown): boolean {
  return error instanceof TypeError && error.message === "fetch failed";
}
