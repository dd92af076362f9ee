import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { onTestFinished } from "vitest";
import type { AtEnd } from "../../testing/src/temporary-folder.test-data.ts";

export interface Reply {
  readonly status?: number;
  readonly body?: unknown;
  /** Handles the request and closes the connection without an answer. */
  readonly hangUp?: boolean;
}

/**
 * Starts a JSON server on loopback and returns its URL.
 *
 * @param atEnd Registers the shutdown. Concurrent tests pass their own `onTestFinished`.
 */
export async function serveJson(
  answer: (path: string, body: Record<string, unknown>, request: IncomingMessage) => Reply,
  atEnd: AtEnd = onTestFinished,
): Promise<string> {
  const server = createServer((request, response) => void reply(request, response));
  async function reply(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const chunks: Buffer[] = [];
    for await (const chunk of request) chunks.push(chunk as Buffer);
    const text = Buffer.concat(chunks).toString();
    const {
      status = 200,
      body = {},
      hangUp,
    } = answer(request.url!, (text === "" ? {} : JSON.parse(text)) as Record<string, unknown>, request);
    if (hangUp === true) return void request.socket.destroy();
    response.writeHead(status, { "content-type": "application/json" }).end(JSON.stringify(body));
  }
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  atEnd(
    () =>
      new Promise<void>((resolve) => {
        server.close(() => resolve());
        server.closeAllConnections();
      }),
  );
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
}
