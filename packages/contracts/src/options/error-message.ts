import { quoteValue } from "./quote-value.ts";

/** Returns an Error's message as a string, or any other thrown value as one. */
export function errorMessage(error: unknown): string {
  if (error instanceof Error) return String(error.message);
  return typeof error === "object" && error !== null ? quoteValue(error) : String(error);
}
