import { errorMessage } from "@periodic-eval/core/internal";

const longestReason = 300;

/** Masked before it is cut: a cut through the key would leave a part of it that no longer is the key. */
export function reasonOf(error: unknown, key: string | null): string {
  const parts: string[] = [];
  for (let at: unknown = error; at instanceof Error && parts.length < 4; at = at.cause) {
    const message = at.message.replace(/\.$/, "");
    if (message !== "" && !parts.includes(message)) parts.push(message);
  }
  const reason = withoutKey(parts.length === 0 ? errorMessage(error) : parts.join(": "), key);
  return reason.length > longestReason ? `${reason.slice(0, longestReason)}…` : reason;
}

/** A server may say back what it was sent. Short stand-ins for a key ("none") are words like any other. */
export function withoutKey(text: string, key: string | null): string {
  return key === null || key.length < 6 ? text : text.replaceAll(key, "***");
}
