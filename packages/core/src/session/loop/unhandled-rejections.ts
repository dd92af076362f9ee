import { errorMessage } from "../../internal/error-message.ts";
import type { Reporter } from "../records/reporter.ts";

/**
 * Reports rejections that nobody handles as warnings until the returned function is called. Without a listener they end a Node
 * process, and a callback may leave a promise behind. Browsers log them.
 */
export function reportUnhandledRejections(reporter: Reporter): () => void {
  const reported = new Set<string>();
  const report = (error: unknown) => {
    reporter.fail(error);
    const reason = errorMessage(error);
    if (reported.has(reason)) return;
    reported.add(reason);
    const message = `a promise that nobody handles was rejected (reported once): ${reason}`;
    reporter.warn("unhandledRejection", message);
  };
  globalThis.process?.on?.("unhandledRejection", report);
  return () => void globalThis.process?.off?.("unhandledRejection", report);
}
