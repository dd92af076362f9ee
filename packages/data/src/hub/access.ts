import { process } from "@periodic-eval/store/platform";
import { configError } from "@periodic-eval/contracts/options";

/**
 * Returns the hub's URL from HF_ENDPOINT and the access token from HF_TOKEN, as `@huggingface/hub` takes them.
 *
 * @throws PeriodicEvalError `config` for a malformed variable. The error does not repeat the token.
 */
export function readAccess(): { readonly hubUrl?: string; readonly accessToken?: string } {
  const endpoint = endpointOf("HF_ENDPOINT", "the URL of a hub");
  const token = process.env["HF_TOKEN"]?.trim();
  // The error of `fetch` would quote a token with other characters.
  if (token && !/^hf_[!-~]*$/.test(token))
    throw configError({
      where: "HF_TOKEN",
      got: "a value that is not repeated here",
      expected:
        "an access token, which begins with hf_ and has no spaces, line breaks or letters beyond ASCII",
      fix,
    });
  return { ...(endpoint && { hubUrl: endpoint }), ...(token && { accessToken: token }) };
}

const fix = "Correct the environment variable, or unset it.";

/**
 * Returns the URL in an environment variable, without a slash at its end; null if it is not set.
 *
 * @throws PeriodicEvalError `config` for any other value, and for a URL with a user name, which `fetch` refuses and quotes.
 */
export function endpointOf(variable: string, expected: string): string | null {
  const address = process.env[variable]?.trim().replace(/\/+$/, "");
  if (!address) return null;
  const url = URL.canParse(address) ? new URL(address) : null;
  if (url !== null && /^https?:$/.test(url.protocol) && url.username === "" && url.password === "")
    return address;
  throw configError({
    where: variable,
    ...(address.includes("@")
      ? { got: "a value that is not repeated here, because it may contain a password" }
      : { value: address }),
    expected: `${expected}, without a user name`,
    fix,
  });
}

/** Whether HF_HUB_OFFLINE forbids requests. */
export const isOffline = (): boolean =>
  ["1", "true", "yes", "on"].includes(process.env["HF_HUB_OFFLINE"]?.toLowerCase() ?? "");
