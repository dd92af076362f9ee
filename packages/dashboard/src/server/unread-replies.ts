import type { Server, ServerResponse } from "node:http";

/** Bytes that wait for clients, in all replies together. */
const mostUnreadBytes = 256 * 2 ** 20;
/** Milliseconds between two counts of them. */
const countMs = 250;

/**
 * Limits the memory of replies that their clients do not read: above `most` bytes together, the oldest of them lose their
 * connections. One reply alone may be larger.
 */
export function limitUnreadReplies(server: Server, most = mostUnreadBytes): void {
  const open = new Set<ServerResponse>();
  server.on("request", (_, response: ServerResponse) => {
    open.add(response);
    response.once("close", () => open.delete(response));
  });
  const timer = setInterval(() => {
    const unread = [...open].filter(({ writableLength }) => writableLength > 0);
    let bytes = unread.reduce((sum, { writableLength }) => sum + writableLength, 0);
    for (const response of unread.slice(0, -1)) {
      if (bytes <= most) break;
      bytes -= response.writableLength;
      response.destroy();
    }
  }, countMs);
  timer.unref();
  server.once("close", () => clearInterval(timer));
}
