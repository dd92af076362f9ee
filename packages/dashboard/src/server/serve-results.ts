import { createAdaptorServer } from "@hono/node-server";
import { once } from "node:events";
import type { Server } from "node:http";
import { isIPv6, type AddressInfo } from "node:net";
import { PeriodicEvalError } from "@periodic-eval/core";
import { bareHost, checkKeys, isCount, errorMessage, quoteValue } from "@periodic-eval/core/internal";
import { errnoOf } from "@periodic-eval/core/snapshots";
import { evalPath, resultsServer, serverOptionNames, type ResultsServerOptions } from "./results-server.ts";

export interface ServeOptions extends ResultsServerOptions {
  /** 0: any that is free. Default 8010. */
  readonly port?: number;
}

/** A server that listens. */
export interface Serving {
  /** Of the page of all runs. */
  readonly address: string;
  /** Ends it, and the answers that are under way. */
  close(): Promise<void>;
}

/**
 * Serves `resultsServer` on a host, by default to this machine alone. There is no password: on another host than the default,
 * whoever reaches it reads everything below the root.
 *
 * @throws PeriodicEvalError `config` where the root is no folder, another option is wrong, or nothing can listen on that host and port.
 */
export async function serveResults(options: ServeOptions): Promise<Serving> {
  checkKeys("serveResults", options, [...Object.keys(serverOptionNames), "port"]);
  const { port = 8010, ...others } = options;
  const { host = "127.0.0.1" } = others;
  if (!isCount(port) || port > 65_535)
    throw new PeriodicEvalError({
      code: "config",
      where: "port",
      got: quoteValue(port),
      expected: "a whole number from 0 to 65535",
      fix: "Leave it out for 8010; 0 is any that is free.",
    });
  const app = resultsServer(others);
  const server = createAdaptorServer({ fetch: app.fetch, hostname: host }) as Server;
  server.listen(port, bareHost(host));
  try {
    await once(server, "listening");
  } catch (error) {
    throw cannotListen(error, host, port);
  }
  // What a connection does wrong ends that connection.
  server.on("error", () => undefined);
  const { port: taken } = server.address() as AddressInfo;
  const name = isIPv6(bareHost(host)) ? `[${bareHost(host)}]` : host;
  return {
    address: `http://${name}:${taken}${evalPath}`,
    async close() {
      const closed = once(server, "close");
      server.close();
      server.closeAllConnections();
      await closed;
    },
  };
}

function cannotListen(error: unknown, host: string, port: number): PeriodicEvalError {
  const taken = {
    where: "port",
    got: `${port}, on which another program listens`,
    expected: "a free port",
    fix: "Give another port; 0 is any that is free.",
  };
  const denied = {
    where: "port",
    got: `${port}, on which this user may not listen`,
    expected: "a port of 1024 or above",
    fix: "Give another port.",
  };
  const foreign = {
    where: "host",
    got: `${host}, which is no address of this machine`,
    expected: "one that it has, as 127.0.0.1",
    fix: "Give another host.",
  };
  const other = {
    where: `${host}:${port}`,
    got: errorMessage(error),
    expected: "a host and a port to listen on",
    fix: "Give others.",
  };
  const known: Readonly<Record<string, typeof other>> = {
    EADDRINUSE: taken,
    EACCES: denied,
    EADDRNOTAVAIL: foreign,
    ENOTFOUND: foreign,
  };
  return new PeriodicEvalError({ code: "config", ...(known[errnoOf(error) ?? ""] ?? other), cause: error });
}
