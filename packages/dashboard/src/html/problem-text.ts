import { errorMessage } from "@periodic-eval/contracts/options";

/** Returns the message of an error for a page, without the prefix that names this package in a terminal. */
export const problemText = (error: unknown): string => errorMessage(error).replace(/^\[periodic-eval\] /, "");
