import type { Readable, Writable } from "node:stream";
import { PeriodicEvalError, type CallOptions, type ErrorCode } from "@periodic-eval/contracts";
import { describeZodIssue, errorMessage, pathText, quoteValue } from "@periodic-eval/contracts/options";
import type * as z from "zod";
import {
  hostCalls,
  maximumLine,
  messageSchema,
  trainerCalls,
  type HostMethod,
  type ParamsOf,
  type ResultOf,
  type RowMethod,
  type RowOf,
  type TrainerMethod,
  type TrainerParams,
  type WireError,
  type WireMessage,
} from "./protocol.ts";

/** Handles the trainer's messages. */
export interface TrainerHandlers {
  /** Answers a call. What it throws becomes the error of the answer. */
  call<M extends TrainerMethod>(method: M, params: TrainerParams[M]): Promise<unknown>;
  warn(message: string): void;
}

interface RowOptions extends Partial<Pick<CallOptions, "signal" | "countTokens">> {
  /** Called for each sign of life of the call. */
  onProgress?(): void;
}

/** A call to the trainer that waits for its answer. */
interface Pending {
  readonly method: HostMethod;
  readonly rows: unknown[];
  /** Rows of the answer; null if the answer is one result. */
  readonly expected: number | null;
  readonly options: RowOptions;
  tokens: number;
  resolve(value: unknown): void;
  reject(error: unknown): void;
}

export interface ConnectionOptions {
  readonly input: Readable;
  readonly output: Writable;
  /** Names the trainer in errors. */
  readonly where: string;
  /** Whether the trainer's process is gone. Processes that it forked can hold its end of the connection open. */
  isTrainerGone?(): boolean;
}

/** Seconds between two signs of life. */
const pingSeconds = 10;

/** Why a connection ends that the trainer closes, or whose trainer is gone. */
export const endedText = "the trainer's process has ended";

/** Seconds without a word from the trainer after which a call no longer waits. A trainer that works reports progress. */
const silenceSeconds = 300;

/**
 * One end of the live protocol: the host's. Calls of the trainer are handled in order, one at a time; calls of the host are answered
 * by the trainer while its own call waits.
 */
export class Connection {
  readonly where: string;
  readonly #output: Writable;
  readonly #input: Readable;
  readonly #pending = new Map<number, Pending>();
  readonly #ended = new AbortController();
  readonly #isTrainerGone: () => boolean;
  #last = 0;
  #seconds = 0;
  #silentSeconds = 0;

  constructor({ input, output, where, isTrainerGone = () => false }: ConnectionOptions) {
    this.where = where;
    this.#isTrainerGone = isTrainerGone;
    this.#input = input;
    this.#output = output;
    output.on("error", (error) => this.end(error));
  }

  /** Aborts when the connection ends, with the reason. */
  get ended(): AbortSignal {
    return this.#ended.signal;
  }

  /**
   * Handles messages until the trainer closes its end of the connection.
   *
   * @throws PeriodicEvalError `model` if it ends for another reason: a line that is no message, or a call of `end`.
   */
  async serve(handlers: TrainerHandlers): Promise<void> {
    let handling: Promise<void> = Promise.resolve();
    const clock = setInterval(() => this.#countSecond(), 1000);
    try {
      for await (const line of linesOf(this.#input)) {
        this.#silentSeconds = 0;
        if (line.trim() === "") continue;
        const message = parse(line);
        if (!("method" in message)) this.#settle(message);
        else if (message.id !== undefined) handling = handling.then(() => this.#handle(message, handlers));
        else if (message.method === "warn") handlers.warn(quoteValue(message.params["message"]));
      }
    } catch (error) {
      this.end(error);
      await handling;
      throw this.lost();
    } finally {
      clearInterval(clock);
    }
    this.end(new Error(endedText));
    await handling;
  }

  /** Ends the connection, and rejects the calls that wait. Only the first reason counts. */
  end(reason: unknown): void {
    if (this.ended.aborted) return;
    this.#ended.abort(reason);
    for (const pending of this.#pending.values()) pending.reject(this.lost());
    this.#input.destroy();
  }

  /** Asks the trainer for rows; they arrive in order, in several messages if they are many. */
  async rows<M extends RowMethod>(
    method: M,
    params: ParamsOf<M>,
    count: number,
    options: RowOptions = {},
  ): Promise<readonly RowOf<M>[]> {
    if (count === 0) return [];
    const text = JSON.stringify(params);
    const half = count >> 1;
    if (half === 0 || Buffer.byteLength(text) < maximumLine / 2)
      return (await this.#call(method, text, count, options)) as readonly RowOf<M>[];
    const first = await this.rows(method, slice(params, 0, half), half, options);
    return [...first, ...(await this.rows(method, slice(params, half, count), count - half, options))];
  }

  /** Asks the trainer for one result. */
  async ask<M extends Exclude<HostMethod, RowMethod>>(method: M, params: ParamsOf<M>): Promise<ResultOf<M>> {
    const result = await this.#call(method, JSON.stringify(params), null, {});
    const schema = (hostCalls[method] as { readonly result: z.ZodType }).result;
    return this.#checked(method, schema, result) as ResultOf<M>;
  }

  notify(method: "wake" | "ping" | "warn", params: Readonly<Record<string, unknown>> = {}): void {
    this.#send(JSON.stringify({ method, params }));
  }

  /** Returns the error of an answer that is not what the protocol says. */
  wrong(what: string, got: string, expected: string): PeriodicEvalError {
    return new PeriodicEvalError({
      code: "model",
      where: `${this.where} ${what}`,
      got,
      expected,
      fix: "Check that trainer and host have versions that belong together.",
    });
  }

  /** Returns the error of a call that the trainer does not answer any more. */
  lost(): PeriodicEvalError {
    const { reason } = this.ended as { readonly reason: unknown };
    return new PeriodicEvalError({
      code: "model",
      where: "the live connection",
      got: `an end: ${errorMessage(reason)}`,
      expected: "a trainer that answers",
      fix: "Start training again: it resumes from its last checkpoint.",
      cause: reason,
    });
  }

  #call(method: HostMethod, params: string, expected: number | null, options: RowOptions): Promise<unknown> {
    const { signal } = options;
    signal?.throwIfAborted();
    if (this.ended.aborted) return Promise.reject(this.lost());
    const id = ++this.#last;
    return new Promise<unknown>((resolve, reject) => {
      const cancel = () => this.#send(JSON.stringify({ method: "cancel", params: { call: id } }));
      const settle =
        <T>(end: (value: T) => void) =>
        (value: T) => {
          signal?.removeEventListener("abort", cancel);
          this.#pending.delete(id);
          end(value);
        };
      this.#send(`{"id":${id},"method":"${method}","params":${params}}`);
      this.#pending.set(id, {
        method,
        rows: [],
        expected,
        options,
        tokens: 0,
        resolve: settle(resolve),
        // The reason of the abort, not that the trainer says so.
        reject: settle((error: unknown) =>
          reject(signal?.aborted === true ? (signal.reason as Error) : (error as Error)),
        ),
      });
      signal?.addEventListener("abort", cancel);
    });
  }

  #countSecond(): void {
    this.#seconds += 1;
    if (this.#seconds % pingSeconds === 0) this.notify("ping");
    this.#silentSeconds = this.#pending.size === 0 ? 0 : this.#silentSeconds + 1;
    if (this.#isTrainerGone()) this.end(new Error(endedText));
    if (this.#silentSeconds >= silenceSeconds)
      this.end(new Error(`the trainer's process said nothing for ${silenceSeconds} seconds`));
  }

  #settle(message: Exclude<WireMessage, { readonly method: string }>): void {
    const pending = this.#pending.get(message.id);
    if (pending === undefined) {
      // The rest of an answer whose first rows were wrong is ignored.
      if (message.id <= this.#last) return;
      throw new Error(`the trainer sent an answer to the call ${message.id}, which nobody made`);
    }
    const { method, rows, expected, options } = pending;
    try {
      if ("progress" in message) {
        const { tokens } = message.progress;
        options.onProgress?.();
        if (tokens > pending.tokens) options.countTokens?.(tokens - pending.tokens);
        pending.tokens = Math.max(tokens, pending.tokens);
      } else if ("rows" in message) {
        if (expected === null) throw this.wrong(method, "rows", "one result");
        const schema = (hostCalls[method] as { readonly row: z.ZodType }).row;
        for (const row of message.rows) rows.push(this.#checked(method, schema, row));
        if (rows.length > expected) throw this.wrong(method, `${rows.length} rows`, String(expected));
      } else if ("error" in message) pending.reject(this.#errorOf(method, message.error));
      else if (expected === null) pending.resolve(message.result);
      else if (rows.length === expected) pending.resolve(rows);
      else throw this.wrong(method, `${rows.length} rows`, `${expected}, one for each row of the call`);
    } catch (error) {
      pending.reject(error);
    }
  }

  async #handle(
    { id, method, params }: Extract<WireMessage, { readonly id: number; readonly method: string }>,
    handlers: TrainerHandlers,
  ): Promise<void> {
    try {
      if (!Object.hasOwn(trainerCalls, method))
        throw this.wrong(method, "a call that this host does not know", Object.keys(trainerCalls).join(", "));
      const known = method as TrainerMethod;
      const checked = this.#checked(known, trainerCalls[known], params) as TrainerParams[typeof known];
      this.#send(JSON.stringify({ id, result: await handlers.call(known, checked) }));
    } catch (error) {
      this.#send(JSON.stringify({ id, error: wireError(error, `live ${method}`) }));
    }
  }

  #checked(what: string, schema: z.ZodType, value: unknown): unknown {
    const { success, data, error } = schema.safeParse(value);
    if (success) return data;
    const issue = describeZodIssue(error, value);
    throw this.wrong(`${what}${pathText(issue.path)}`, quoteValue(issue.value), issue.expected);
  }

  #errorOf(method: string, { code, where, got, expected, fix }: WireError): PeriodicEvalError {
    const known: readonly string[] = ["config", "data", "model", "memory"];
    return new PeriodicEvalError({
      code: (known.includes(code) ? code : "model") as ErrorCode,
      where: where === "" ? `${this.where} ${method}` : where,
      got,
      expected: expected === "" ? "an answer" : expected,
      fix: fix === "" ? "See the trainer's own output." : fix,
    });
  }

  #send(line: string): void {
    if (this.ended.aborted) return;
    const size = Buffer.byteLength(line);
    if (size > maximumLine) throw this.wrong("message", `a line of ${size} bytes`, `at most ${maximumLine}`);
    this.#output.write(`${line}\n`);
  }
}

/** The params that hold one entry for each row of a call. */
const perRow: readonly string[] = ["texts", "rows", "chats", "candidates"];

/** Returns a call's params for some of its rows. */
function slice<P extends object>(params: P, first: number, end: number): P {
  const entries = Object.entries(params).map(([name, value]: [string, unknown]) => [
    name,
    perRow.includes(name) && Array.isArray(value) ? value.slice(first, end) : value,
  ]);
  return Object.fromEntries(entries) as P;
}

/** Yields the lines of a stream. What follows the last line feed is the beginning of a message, and is left out. */
async function* linesOf(input: Readable): AsyncGenerator<string> {
  let parts: Buffer[] = [];
  let size = 0;
  const add = (part: Buffer) => {
    parts.push(part);
    size += part.length;
    if (size > maximumLine) throw new Error(`the trainer sent a line of more than ${maximumLine} bytes`);
  };
  for await (const chunk of input as AsyncIterable<Buffer | string>) {
    let rest = Buffer.from(chunk as Buffer);
    for (let end = rest.indexOf("\n"); end !== -1; end = rest.indexOf("\n")) {
      add(rest.subarray(0, end));
      yield Buffer.concat(parts).toString();
      [parts, size] = [[], 0];
      rest = rest.subarray(end + 1);
    }
    add(rest);
  }
}

function parse(line: string): WireMessage {
  let value: unknown;
  try {
    value = JSON.parse(line);
  } catch {
    throw new Error(`the trainer sent a line that is not JSON: ${quoteValue(line)}`);
  }
  const { success, data } = messageSchema.safeParse(value);
  if (!success) throw new Error(`the trainer sent a line that is no message: ${quoteValue(value)}`);
  return data;
}

export function wireError(error: unknown, where: string): WireError {
  if (PeriodicEvalError.is(error)) {
    const { code, where: location, got, expected, fix } = error;
    return { code, where: location, got, expected, fix };
  }
  return { code: "bug", where, got: errorMessage(error), expected: "", fix: "" };
}
