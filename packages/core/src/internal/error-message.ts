import { quoteValue } from "./quote-value.ts";

/** Returns an Error's message, or any other thrown value as a string. */
export function errorMessage(error: unknown): string {
  if (error instanceof Error) return error.message;
  return typeof error === "object" && error !== null ? quoteValue(error) : String(error);
}
