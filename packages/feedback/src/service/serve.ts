import type { AddressInfo } from "node:net";
import type { Server } from "node:http";
import { join, resolve } from "node:path";
import { createAdaptorServer } from "@hono/node-server";
import { configError, errorMessage, isLoopback, parseOptions } from "@periodic-eval/core/internal";
import { callUser, emitWarning } from "../graders/warnings.ts";
import { checkWritable, nodeFiles, takeLock } from "@periodic-eval/core/snapshots";
import pLimit from "p-limit";
import * as z from "zod";
import { tokenEnv } from "../engine/token.ts";
import type { LocalEngineOptions } from "../engine/local-engine.ts";
import { adapterStore } from "./adapters.ts";
import { feedbackApp } from "./app.ts";
import { residentModel } from "./resident-model.ts";

export interface ServeFeedbackOptions extends LocalEngineOptions {
  /** Name of the base model in requests. */
  readonly model: string;
  /** Folder of the adapters. Created if missing. */
  readonly root: string;
  /** Default `127.0.0.1`. A host that is not a loopback address needs a token in OPENCLAW_GATEWAY_TOKEN. */
  readonly host?: string;
  /** Default 8000. 0 chooses a free port. */
  readonly port?: number;
  /** Maximum size of a request. Default 16 MiB. All waiting requests together may have four times this size. */
  readonly maxBodyBytes?: number;
  /** Receives internal errors of the service. */
  readonly onFailure?: (error: Error) => void;
}

export interface FeedbackService {
  readonly url: string;
  /**
   * Shuts the service down after the current request. Rejects waiting requests and closes idle connections. Unlocks `root`, even
   * if disposing the model fails; in this case it throws the error.
   */
  close(): Promise<void>;
}

const bytesRule = "an integer of 1 or more";
const portRule = "an integer from 0 to 65535";
const nonEmpty = z.string("a non-empty string").min(1, "a non-empty string");
const isFunction = (value: unknown) => typeof value === "function";
const optionsSchema = z.strictObject({
  openModel: z.custom<ServeFeedbackOptions["openModel"]>(isFunction, "a function"),
  describe: z.custom<ServeFeedbackOptions["describe"]>(),
  model: nonEmpty,
  root: nonEmpty,
  host: nonEmpty.optional(),
  port: z.int(portRule).min(0, portRule).max(65_535, portRule).optional(),
  maxBodyBytes: z.int(bytesRule).min(1, bytesRule).optional(),
  onFailure: z.custom<NonNullable<ServeFeedbackOptions["onFailure"]>>(isFunction, "a function").optional(),
} satisfies Record<keyof ServeFeedbackOptions, z.ZodType>);
const where = "serveFeedback options";

/** Milliseconds that the last replies may take during shutdown. */
const lastRepliesMs = 1000;

/**
 * Serves a model for training on feedback over HTTP: `/v1/chat/completions`, `/v1/score`, `/v1/lora/init`, `/v1/feedback` and
 * `/v1/health`. Adapters are stored under `root`; a restarted service continues with them.
 *
 * @throws PeriodicEvalError `config` for a wrong option, a host that is not a loopback address without a token, or a port in use;
 *   `store` if another service uses `root`, or if it cannot be written to.
 */
export async function serveFeedback(options: ServeFeedbackOptions): Promise<FeedbackService> {
  parseOptions(where, optionsSchema, options);
  const { describe, model, host = "127.0.0.1", port = 8000, maxBodyBytes = 16 * 2 ** 20 } = options;
  const { openModel } = options;
  const onFailure = reportFailure(options);
  const root = resolve(options.root);
  const token = process.env[tokenEnv]?.trim() || null;
  if (!isLoopback(host) && token === null)
    throw configError({
      where,
      path: ["host"],
      value: host,
      expected: "a loopback address, or a token",
      fix: `Remove host for 127.0.0.1, or set ${tokenEnv}: every client can train the service's models.`,
    });
  await checkWritable(root);
  await nodeFiles.makeFolder(root);
  const lease = await takeLock(join(root, ".feedback-service.lock"), nodeFiles);
  const shutdown = new AbortController();
  let isClosing = false;
  const queue = pLimit(1);
  const adapters = adapterStore(root, describe);
  const parts = { openModel, describe };
  const resident = residentModel({ parts, baseName: model, adapters, signal: shutdown.signal });
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
    await lease.release();
    throw configError({
      where,
      path: ["port"],
      value: port,
      expected: `a port that can be bound (${errorMessage(error)})`,
      fix: "Choose another port or host, or 0 for any free port.",
      cause: error,
    });
  }
  // A connection that fails to open does not stop the service.
  server.on("error", onFailure);
  const { port: bound } = server.address() as AddressInfo;
  let closed: Promise<void> | null = null;
  const close = async (): Promise<void> => {
    isClosing = true;
    const serverClosed = new Promise<void>((done) => server.close(() => done()));
    try {
      // The queue runs this after all waiting requests, which it rejects.
      await queue(() => resident.dispose());
    } finally {
      server.closeIdleConnections();
      // Silent or stalled connections must be closed here, because `server.close` ends Node's timeouts.
      const timer = setTimeout(() => server.closeAllConnections(), lastRepliesMs);
      await serverClosed;
      clearTimeout(timer);
      shutdown.abort();
      await lease.release();
    }
  };
  return {
    url: `http://${host.includes(":") && !host.startsWith("[") ? `[${host}]` : host}:${bound}`,
    close: () => (closed ??= close()),
  };
}

/** Calls `onFailure`. Its errors become warnings. */
const reportFailure =
  ({ onFailure }: ServeFeedbackOptions) =>
  (error: Error): void =>
    callUser(
      () => onFailure?.(error),
      (reason) => emitWarning(`onFailure: ${reason}`),
    );

const listening = (server: Server, port: number, host: string): Promise<void> =>
  new Promise((done, fail) => {
    server.once("error", fail);
    server.listen(port, host.replace(/^\[(.*)\]$/, "$1"), () => {
      server.off("error", fail);
      done();
    });
  });
