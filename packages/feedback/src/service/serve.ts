import { mkdir } from "node:fs/promises";
import type { AddressInfo } from "node:net";
import type { Server } from "node:http";
import { join, resolve } from "node:path";
import { createAdaptorServer } from "@hono/node-server";
import { PeriodicEvalError } from "@periodic-eval/core";
import { isLoopback, checkKeys, isCount, errorMessage, quoteValue } from "@periodic-eval/core/internal";
import { nodeFiles, takeLock } from "@periodic-eval/core/snapshots";
import pLimit from "p-limit";
import { tokenEnv } from "../engine/token.ts";
import type { LocalEngineOptions } from "../engine/local-engine.ts";
import { adapterStore } from "./adapters.ts";
import { feedbackApp } from "./app.ts";
import { residentModel } from "./resident-model.ts";

export interface ServeFeedbackOptions extends LocalEngineOptions {
  /** What the base model is asked by. */
  readonly model: string;
  /** Folder of the adapters; made where it is not there. */
  readonly root: string;
  /** Default `127.0.0.1`. Anything beyond the loopback needs a token, of OPENCLAW_GATEWAY_TOKEN. */
  readonly host?: string;
  /** Default 8000; 0 for any that is free. */
  readonly port?: number;
  /** Largest request; default 16 MiB. Four times as much may wait. */
  readonly maxBodyBytes?: number;
  /** Told of failures of the service's own. */
  readonly onFailure?: (error: Error) => void;
}

export interface FeedbackService {
  readonly url: string;
  /**
   * Ends the service after the request that is running; those that wait are refused, and connections that ask nothing are
   * cut off. The root is free again when it returns, also where it throws what the model's end threw.
   */
  close(): Promise<void>;
}

const names = {
  openModel: true,
  describe: true,
  model: true,
  root: true,
  host: true,
  port: true,
  maxBodyBytes: true,
  onFailure: true,
} as const satisfies Record<keyof ServeFeedbackOptions, true>;

/** How long, in milliseconds, replies have to leave once all requests are done. */
const lastRepliesMs = 1000;

/**
 * Offers a model that is trained on feedback over HTTP: `/v1/chat/completions`, `/v1/score`, `/v1/lora/init`, `/v1/feedback` and
 * `/v1/health`. Adapters lie under `root`, and are as they were when it is started again.
 *
 * @throws PeriodicEvalError `config` for a wrong option, a host beyond the loopback without a token, or a port that is taken;
 *   `store` where another service works in `root`.
 */
export async function serveFeedback(options: ServeFeedbackOptions): Promise<FeedbackService> {
  const { openModel, describe, host, port, root, model, maxBodyBytes } = checked(options);
  const token = process.env[tokenEnv]?.trim() || null;
  if (!isLoopback(host) && token === null)
    throw wrong(
      "host",
      host,
      "the loopback, or a token",
      `Leave it out for 127.0.0.1, or set ${tokenEnv}: whoever reaches the service can train its models.`,
    );
  await mkdir(root, { recursive: true });
  const release = await takeLock(join(root, ".feedback-service.lock"), nodeFiles);
  const ended = new AbortController();
  let isClosing = false;
  const queue = pLimit(1);
  const adapters = adapterStore(root, describe);
  const parts = { openModel, describe };
  const resident = residentModel({ parts, baseName: model, adapters, signal: ended.signal });
  const { onFailure = () => {} } = options;
  const app = feedbackApp({
    adapters,
    resident,
    baseName: model,
    engine: describe,
    host,
    token,
    maxBodyBytes,
    queue,
    isClosing: () => isClosing,
    now: () => new Date(),
    onFailure,
  });
  const server = createAdaptorServer({ fetch: app.fetch, hostname: host }) as Server;
  try {
    await listening(server, port, host);
  } catch (error) {
    await release();
    throw wrong(
      "port",
      port,
      `a port that can be bound (${errorMessage(error)})`,
      "Choose another port or host, or 0 for any port that is free.",
    );
  }
  // A connection that could not be taken ends nothing.
  server.on("error", onFailure);
  const { port: bound } = server.address() as AddressInfo;
  let closed: Promise<void> | null = null;
  const close = async (): Promise<void> => {
    isClosing = true;
    const silent = new Promise<void>((done) => server.close(() => done()));
    try {
      // Behind all that runs or waits.
      await queue(() => resident.dispose());
    } finally {
      server.closeIdleConnections();
      // A connection that sends nothing, or half a request, would stay open: Node's own time limits end with `server.close`.
      const cut = setTimeout(() => server.closeAllConnections(), lastRepliesMs);
      await silent;
      clearTimeout(cut);
      ended.abort();
      await release();
    }
  };
  return {
    url: `http://${host.includes(":") && !host.startsWith("[") ? `[${host}]` : host}:${bound}`,
    close: () => (closed ??= close()),
  };
}

function checked(options: ServeFeedbackOptions) {
  checkKeys("serveFeedback", options, Object.keys(names));
  const { host = "127.0.0.1", port = 8000, maxBodyBytes = 16 * 2 ** 20, model, root } = options;
  for (const [name, text] of Object.entries({ host, model, root }))
    if (typeof text !== "string" || text === "") throw wrong(name, text, "a text", "Give it.");
  if (!isCount(port) || port > 65_535)
    throw wrong("port", port, "a whole number from 0 to 65535", "Leave it out for 8000.");
  if (!isCount(maxBodyBytes, 1))
    throw wrong("maxBodyBytes", maxBodyBytes, "a whole number of 1 or more", "Leave it out for 16 MiB.");
  return { ...options, host, port, maxBodyBytes, root: resolve(root) };
}

const listening = (server: Server, port: number, host: string): Promise<void> =>
  new Promise((done, fail) => {
    server.once("error", fail);
    server.listen(port, host.replace(/^\[(.*)\]$/, "$1"), () => {
      server.off("error", fail);
      done();
    });
  });

const wrong = (option: string, got: unknown, expected: string, fix: string): PeriodicEvalError =>
  new PeriodicEvalError({
    code: "config",
    where: `serveFeedback.${option}`,
    got: quoteValue(got),
    expected,
    fix,
  });
