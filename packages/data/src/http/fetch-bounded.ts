import { startTimeout } from "@periodic-eval/store";

/** Maximum size of a reply of a judge or a logger's server, decompressed. */
export const maxReplyBytes = 8 * 2 ** 20;

export interface ReplyLimits {
  /** Time limit of the whole request, including the body of the reply. */
  readonly timeoutSeconds: number;
  /** Maximum size of the decompressed body. Default 8 MiB. */
  readonly maxBytes?: number;
  /** Called with the status as soon as the headers have arrived. */
  readonly onStatus?: (status: number) => void;
}

/** A reply with its whole body. */
export interface WholeReply {
  /** Status and headers. Its body has been read. */
  readonly response: Response;
  readonly bytes: Uint8Array;
  /** Returns the body as a string. Invalid UTF-8 is replaced, as `Response.text` does. */
  text(): string;
}

/** A reply whose body exceeds the limit. The same request would fail again. */
export class ReplyTooLargeError extends Error {
  constructor(maxBytes: number) {
    super(`a reply of more than ${maxBytes} bytes`);
    this.name = "ReplyTooLargeError";
  }
}

/**
 * Sends a request and reads the whole reply. Cancels the body, and with it the connection, at the time limit, when `init.signal`
 * aborts, and when the decompressed body exceeds `maxBytes`.
 *
 * @throws ReplyTooLargeError for a body over the limit; a DOMException `TimeoutError`; the reason of `init.signal`; any error of
 *   `fetch`.
 */
export async function fetchBounded(
  url: Parameters<typeof fetch>[0],
  init: RequestInit,
  { timeoutSeconds, maxBytes = maxReplyBytes, onStatus }: ReplyLimits,
): Promise<WholeReply> {
  const { signal } = init;
  signal?.throwIfAborted();
  // Not `AbortSignal.timeout`: after the headers, Node's fetch holds its signal only by a weak reference.
  const limit = new AbortController();
  const stop = () => limit.abort(signal?.reason);
  signal?.addEventListener("abort", stop, { once: true });
  const timeUp = () => limit.abort(new DOMException(`timed out after ${timeoutSeconds} s`, "TimeoutError"));
  const stopTimeout = startTimeout(timeoutSeconds, timeUp);
  try {
    const response = await fetch(url, { ...init, signal: limit.signal });
    onStatus?.(response.status);
    const bytes = await readBounded(response, maxBytes, limit.signal);
    return { response, bytes, text: () => new TextDecoder().decode(bytes) };
  } finally {
    stopTimeout();
    signal?.removeEventListener("abort", stop);
  }
}

async function readBounded(response: Response, maxBytes: number, signal: AbortSignal): Promise<Uint8Array> {
  if (response.body === null) return new Uint8Array();
  const reader = response.body.getReader();
  // A pending read then ends as if the body were complete.
  const cancel = () => void reader.cancel(signal.reason).catch(() => undefined);
  signal.addEventListener("abort", cancel, { once: true });
  const chunks: Uint8Array[] = [];
  let size = 0;
  try {
    for (;;) {
      const { done, value } = await reader.read();
      signal.throwIfAborted();
      if (done) return joinBytes(chunks, size);
      size += value.length;
      if (size > maxBytes) throw new ReplyTooLargeError(maxBytes);
      chunks.push(value);
    }
  } finally {
    signal.removeEventListener("abort", cancel);
    cancel();
  }
}

/** Returns the bytes of chunks, one after the other. `size` is the sum of their lengths. */
export function joinBytes(chunks: readonly Uint8Array[], size: number): Uint8Array {
  const bytes = new Uint8Array(size);
  let at = 0;
  for (const chunk of chunks) {
    bytes.set(chunk, at);
    at += chunk.length;
  }
  return bytes;
}

/**
 * Replaces the secret by `***`, because a server may echo the request. Also masks the secret in JSON strings and in addresses. Does
 * not mask a secret of less than 6 characters: it is a placeholder such as `none`, which replies contain as an ordinary word.
 */
export function maskSecret(text: string, secret: string | null): string {
  if (secret === null || secret.length < 6) return text;
  const inJson = (value: string) => JSON.stringify(value).slice(1, -1);
  const forms = [secret, inJson(secret), inJson(inJson(secret)), encodeURIComponent(secret)];
  return forms.reduce((masked, form) => masked.replaceAll(form, "***"), text);
}
