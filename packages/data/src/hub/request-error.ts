import { PeriodicEvalError, type ErrorDetails } from "@periodic-eval/contracts";
import { errorMessage } from "@periodic-eval/contracts/options";
import { process } from "@periodic-eval/store/platform";
import type { HubRepo } from "./hub-id.ts";

/** Returns the error for a failed request to the hub, with a fix that depends on its status. */
export function requestError(repo: HubRepo, cause: unknown, file?: string): PeriodicEvalError {
  if (PeriodicEvalError.is(cause)) return cause;
  const where = `${repo.where}${file === undefined ? "" : `, ${file}`} on the hub`;
  const { type, revision } = repo;
  const failed = (got: string, expected: string, fix: string) =>
    hubError(repo, { where, got, expected, fix, cause });
  const { statusCode: status } = (cause ?? {}) as { readonly statusCode?: unknown };
  if (typeof status !== "number")
    return failed(reasonOf(cause), "a response of the hub", fixes[type].unreachable);
  const detail = errorMessage(cause).split(/\. (?:URL|Request ID): /, 1)[0]!;
  const got = detail.startsWith("Api error") ? `status ${status}` : `status ${status} (${detail})`;
  if (status === 401 || status === 403) {
    const isLocal = type === "model" ? "No local folder has this name: check" : "Check";
    const fix = process.env["HF_TOKEN"]
      ? `${isLocal} the name, accept the ${type}'s terms on its page, and check that HF_TOKEN may read it.`
      : `${isLocal} the name; for a gated or private ${type} accept its terms on its page and set HF_TOKEN to your access token.`;
    return failed(got, `a ${type} that exists and that you may read`, fix);
  }
  if (status === 404) {
    const fix = type === "model" && revision !== "main" ? fixes.model.noRevision : fixes[type].notFound;
    return failed(got, `a ${type} of this name and revision`, fix);
  }
  const isTooOften = status === 429;
  const fix = isTooOften ? "Wait, or set HF_TOKEN: the hub limits the rate of requests." : fixes[type].failed;
  return failed(got, "a successful response", fix);
}

const fixes = {
  model: {
    unreachable:
      "No local folder has this name: check the name, the network and HF_ENDPOINT. Models in the cache need no network.",
    notFound: "No local folder has this name either: check the name.",
    noRevision: "No local folder has this name either: check the name and the revision.",
    failed: "Try again later.",
  },
  dataset: {
    unreachable: "Check the network and HF_ENDPOINT.",
    notFound:
      "Check the name. If the hub has not converted the dataset to Parquet, download it and name the file.",
    failed: "Try again later, or name a file.",
  },
} as const;

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

/**
 * Returns the error for a repository, with the code `model` or `data`. Names and values in it may come from the hub, so long
 * ones are cut.
 */
export const hubError = ({ type }: HubRepo, { where, got, ...rest }: Omit<ErrorDetails, "code">) =>
  new PeriodicEvalError({
    code: type === "model" ? "model" : "data",
    where: cut(where, 500),
    got: cut(got, 300),
    ...rest,
  });

export const cut = (text: string, length: number): string =>
  text.length > length ? `${text.slice(0, length)}…` : text;
