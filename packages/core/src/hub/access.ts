import { configError } from "../internal/config-error.ts";

/**
 * Returns the hub's URL from HF_ENDPOINT and the access token from HF_TOKEN, as `@huggingface/hub` takes them.
 *
 * @throws PeriodicEvalError `config` for a malformed variable. The error does not repeat the token.
 */
export function readAccess(): { readonly hubUrl?: string; readonly accessToken?: string } {
  const endpoint = process.env["HF_ENDPOINT"]?.replace(/\/+$/, "");
  const token = process.env["HF_TOKEN"]?.trim();
  const fix = "Correct the environment variable, or unset it.";
  if (endpoint && !/^https?:\/\/[^/]/.test(endpoint))
    throw configError({ where: "HF_ENDPOINT", value: endpoint, expected: "the URL of a hub", fix });
  if (token && !token.startsWith("hf_"))
    throw configError({
      where: "HF_TOKEN",
      got: "a value that is not repeated here",
      expected: "an access token, which begins with hf_",
      fix,
    });
  return { ...(endpoint && { hubUrl: endpoint }), ...(token && { accessToken: token }) };
}

/** Whether HF_HUB_OFFLINE forbids requests. */
export const isOffline = (): boolean =>
  ["1", "true", "yes", "on"].includes(process.env["HF_HUB_OFFLINE"]?.toLowerCase() ?? "");
