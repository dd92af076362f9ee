import { fetchBounded } from "@periodic-eval/data";
import pRetry, { AbortError } from "p-retry";
import { bodyOf, type Form } from "./messages.ts";
import { messageName, type Queue, type QueuedMessage } from "./queue.ts";

export interface Webhook {
  readonly url: URL;
  readonly form: Form;
}

/** Sends the messages of a queue in the background, in their order. */
export interface Delivery {
  /** Queues a message. Returns false for one that is known. */
  add(message: QueuedMessage): boolean;
  /** Resolves when no message waits. */
  finish(): Promise<void>;
  /** Stops sending, and returns what did not arrive; null if all did. */
  close(): string | null;
}

/** Timeout of a request. A slow server may have taken a message that timed out, so it is not sent again. */
const timeoutSeconds = 60;

/** Errors of a connection that was never made, so that the server has no part of the request. */
const unconnected = [
  "ECONNREFUSED",
  "ENOTFOUND",
  "EAI_AGAIN",
  "ENETUNREACH",
  "EHOSTUNREACH",
  "UND_ERR_CONNECT_TIMEOUT",
];

/** @param webhook Null: messages are only recorded, for the desktop. */
export function startDelivery(queue: Queue, webhook: Webhook | null): Delivery {
  const abort = new AbortController();
  let lastError: string | null = null;
  let running: Promise<void> | null = null;

  let isSending = false;

  async function attempt({ url, form }: Webhook, message: QueuedMessage): Promise<void> {
    queue.mark("sending");
    isSending = true;
    try {
      await post(url, bodyOf(message, form), abort.signal);
    } catch (error) {
      if (!(error instanceof AbortError)) {
        lastError = (error as Error).message;
        queue.mark("waiting");
      }
      throw error;
    } finally {
      isSending = false;
    }
  }

  async function send(): Promise<void> {
    for (let [message] = queue.waiting; message !== undefined; [message] = queue.waiting) {
      const next = message;
      try {
        if (webhook !== null)
          await pRetry(() => attempt(webhook, next), {
            retries: Number.POSITIVE_INFINITY,
            minTimeout: 500,
            maxTimeout: 60_000,
            unref: true,
            signal: abort.signal,
          });
      } catch (error) {
        if (abort.signal.aborted) return;
        queue.drop((error as Error).message);
        continue;
      }
      queue.mark("sent");
    }
  }

  async function sendAll(): Promise<void> {
    try {
      do await send();
      while (queue.waiting.length > 0 && !abort.signal.aborted);
    } finally {
      running = null;
    }
  }

  function wake(): Promise<void> {
    running ??= sendAll();
    // A file that cannot be written stops sending; the next `add` throws its error.
    running.catch(() => undefined);
    return running;
  }

  void wake();
  return {
    add(message) {
      const isNew = queue.add(message);
      if (isNew) void wake();
      return isNew;
    },
    finish: wake,
    close() {
      abort.abort();
      if (isSending) queue.drop("no answer until the end, so it may have arrived");
      const { dropped, path } = queue;
      const names = webhook === null ? "" : queue.waiting.map(messageName).join(", ");
      queue.close();
      const unsent = `not sent: ${names} (${lastError ?? "no answer yet"}); kept in ${path}, and sent if the run resumes`;
      const problems = [...dropped.map((what) => `dropped: ${what}`), ...(names === "" ? [] : [unsent])];
      return problems.length === 0 ? null : problems.join("; ");
    },
  };
}

/**
 * Posts a message.
 *
 * @throws Error if the server did not take it: no connection, 429, 500 or 503. p-retry's AbortError for all other failures, among them
 *   those of a gateway, behind which it may have arrived. No message has the address, which an error of `fetch` may quote.
 */
async function post(url: URL, body: string, signal: AbortSignal): Promise<void> {
  const headers = { "content-type": "application/json" };
  const init = { method: "POST", headers, body, signal, redirect: "manual" as const };
  const reply = await fetchBounded(url, init, { timeoutSeconds }).catch((error: unknown) => {
    const code = codeOf(error);
    if (code !== null && unconnected.includes(code)) throw new Error(`no connection, ${code}`);
    const reason =
      (error as Error).name === "TimeoutError" ? `no answer within ${timeoutSeconds} s` : "no answer";
    throw new AbortError(`${reason}${code === null ? "" : `, ${code}`}, so it may have arrived`);
  });
  const { status, ok } = reply.response;
  if (ok) return;
  const message = `the webhook answered ${status}`;
  if ([429, 500, 503].includes(status)) throw new Error(message);
  const redirect = status >= 300 && status < 400 ? ", a redirect, which is not followed" : "";
  const gateway = [408, 502, 504].includes(status) ? ", so it may have arrived" : "";
  throw new AbortError(`${message}${redirect}${gateway}`);
}

/** Returns the code of the operating system or of undici, from an error or its causes. */
function codeOf(error: unknown): string | null {
  for (let cause = error; cause instanceof Error; cause = cause.cause) {
    const inner = cause instanceof AggregateError ? (cause.errors as readonly unknown[])[0] : cause;
    const { code } = inner as { readonly code?: unknown };
    if (typeof code === "string") return code;
  }
  return null;
}
