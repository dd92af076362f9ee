import * as z from "zod";
import { once } from "node:events";
import type { Server, ServerResponse } from "node:http";
import { isIPv6, type AddressInfo } from "node:net";
import { createAdaptorServer } from "@hono/node-server";
import { configError, errorMessage, parseOptions } from "@periodic-eval/contracts/options";
import type { PeriodicEvalError } from "@periodic-eval/core";
import { bareHost } from "@periodic-eval/data";
import { errnoOf } from "@periodic-eval/store";
import { evalPath, resultsServer } from "./results-server.ts";
import { serverOptions, type ResultsServerOptions } from "./server-options.ts";

export interface ServeOptions extends ResultsServerOptions {
  /** The port to listen on; 0 selects a free port. Default: 8010. */
  readonly port?: number;
}

const portRange = "an integer from 0 to 65535";
const serveOptions = z.strictObject({
  ...serverOptions.shape,
  port: z
    .int(portRange)
    .min(0, portRange)
    .max(65_535, portRange)
    .meta({ fix: "Omit it for 8010, or use 0 for a free port." })
    .optional(),
} satisfies Record<keyof ServeOptions, z.ZodType>);

const where = "serveResults options";

/** Milliseconds without a byte in either direction after which a connection is closed. A large page takes seconds. */
const silentMs = 120_000;

/** A listening server. */
export interface Serving {
  /** URL of the page of all runs. */
  readonly address: string;
  /** Closes the server and its open connections. */
  close(): Promise<void>;
}

/**
 * Starts `resultsServer` on a host; by default only this machine can reach it. On any other host, every machine that can reach
 * the server can read everything below the root, unless `token` is set.
 *
 * @throws PeriodicEvalError `config` for a wrong option, or if the server cannot listen on the host and port.
 */
export async function serveResults(options: ServeOptions): Promise<Serving> {
  parseOptions(where, serveOptions, options);
  const { port = 8010, ...rest } = options;
  const { host = "127.0.0.1" } = rest;
  const server = createAdaptorServer({ fetch: resultsServer(rest).fetch, hostname: host }) as Server;
  server.listen(port, bareHost(host));
  try {
    await once(server, "listening");
  } catch (error) {
    throw listenError(error, host, port);
  }
  // A client that does not read its reply would keep the reply in memory.
  server.timeout = silentMs;
  limitUnreadReplies(server);
  // An error of one connection must not end the process.
  server.on("error", () => undefined);
  const { port: usedPort } = server.address() as AddressInfo;
  const name = isIPv6(bareHost(host)) ? `[${bareHost(host)}]` : host;
  return {
    address: `http://${name}:${usedPort}${evalPath}`,
    async close() {
      const closed = once(server, "close");
      server.close();
      server.closeAllConnections();
      await closed;
    },
  };
}

function listenError(cause: unknown, host: string, port: number): PeriodicEvalError {
  const isHost = ["EADDRNOTAVAIL", "ENOTFOUND"].includes(errnoOf(cause) ?? "");
  return configError({
    where,
    path: [isHost ? "host" : "port"],
    got: `${isHost ? host : port} (${errorMessage(cause)})`,
    expected: isHost
      ? "an address of this machine, such as 127.0.0.1"
      : "a port that is free, of 1024 or above",
    fix: isHost ? "Choose another host." : "Choose another port, or 0 for a free one.",
    cause,
  });
}

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
