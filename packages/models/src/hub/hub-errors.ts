import { PeriodicEvalError } from "@periodic-eval/core";
import { errorMessage } from "@periodic-eval/core/internal";
import { shownId, type HubId } from "./hub-id.ts";

export function hubError(
  where: string,
  got: string,
  expected: string,
  fix: string,
  cause?: unknown,
): PeriodicEvalError {
  return new PeriodicEvalError({ code: "model", where, got, expected, fix, cause });
}

/** What a failed request means, said so that a person knows what to do. */
export function requestError(id: HubId, error: unknown, file?: string): PeriodicEvalError {
  if (PeriodicEvalError.is(error)) return error;
  const where = `${shownId(id)}${file === undefined ? "" : `, ${file}`} on the hub`;
  const { statusCode: status } = (error ?? {}) as { readonly statusCode?: unknown };
  if (typeof status !== "number") return networkError(where, error);
  const said = errorMessage(error).split(/\. (?:URL|Request ID): /, 1)[0]!;
  const got = said.startsWith("Api error") ? `status ${status}` : `status ${status} (${said})`;
  if (status === 401 || status === 403) {
    const hasToken = Boolean(process.env["HF_TOKEN"]);
    const fix = hasToken
      ? "There is no local folder of this name: check it, accept the model's terms on its page, and check that HF_TOKEN may read it."
      : "There is no local folder of this name: check it; for a gated or private model accept its terms on its page and set HF_TOKEN to your access token.";
    return hubError(where, got, "a model that is there and that you may read", fix, error);
  }
  if (status === 404) {
    const fix = `There is no local folder of this name either: check the name${id.revision === "main" ? "" : " and the revision"}.`;
    return hubError(where, got, "a model of this name and revision", fix, error);
  }
  const fix = status === 429 ? "Wait, or set HF_TOKEN: the hub limits requests." : "Try again later.";
  return hubError(where, got, "an answer", fix, error);
}

function networkError(where: string, error: unknown): PeriodicEvalError {
  const fix =
    "There is no local folder of this name: check it, the network and HF_ENDPOINT. What was fetched before needs no network.";
  return hubError(where, reasonOf(error), "an answer of the hub", fix, error);
}

/** `fetch failed (ECONNREFUSED)`: fetch keeps the reason in its cause. */
export function reasonOf(error: unknown): string {
  const cause = error instanceof Error ? (error.cause as NodeJS.ErrnoException | undefined) : undefined;
  const reason = cause?.code ?? cause?.message;
  return reason === undefined ? errorMessage(error) : `${errorMessage(error)} (${reason})`;
}

/** Whether there was no answer at all, so that what is here already is the best there is. */
export function isUnreachable(error: unknown): boolean {
  return error instanceof TypeError && error.message === "fetch failed";
}
