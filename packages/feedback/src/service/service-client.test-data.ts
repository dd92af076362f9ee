import { microWorldParts } from "../engine/micro-world.test-data.ts";
import type { ServeFeedbackOptions } from "./serve.ts";

export interface Reply {
  readonly status: number;
  readonly body: { readonly error?: Readonly<Record<string, string>>; readonly [field: string]: unknown };
}

/** Returns the options of a service with the embedded model on a free port. */
export const microWorldService = (root: string, failures: Error[]): ServeFeedbackOptions => ({
  ...microWorldParts,
  model: "micro-world",
  root,
  port: 0,
  maxBodyBytes: 100_000,
  onFailure: (error) => failures.push(error),
});

/** Sends `body` as JSON with POST; a string is sent unchanged. Without `body`, sends a GET request. */
export async function ask(
  url: string,
  path: string,
  body?: unknown,
  headers: Record<string, string> = {},
): Promise<Reply> {
  const reply = await fetch(`${url}${path}`, {
    method: body === undefined ? "GET" : "POST",
    headers: { "content-type": "application/json", ...headers },
    ...(body !== undefined && { body: isText(body) ? (body as BodyInit) : JSON.stringify(body) }),
  });
  return { status: reply.status, body: (await reply.json()) as Reply["body"] };
}

const isText = (body: unknown) => typeof body === "string" || body instanceof Uint8Array;
