import type {
  AnswerLabel,
  AnswerRow,
  AnswersData,
  MeasurementAnswers,
} from "../../page-data/answers-data.ts";

/** The rows of a measurement that were read so far. */
export interface ReadAnswers {
  readonly rows: readonly AnswerRow[];
  /** Number of stored rows that were read, and of all. */
  readonly read: number;
  readonly total: number;
  /** Resolves when the server has verified the rows; rejects if they are not those that were measured. Null if they are verified. */
  readonly verified: Promise<unknown> | null;
  readonly labelsProblem?: string | undefined;
}

/** @throws Error if the server refuses them. The message is for people. */
export type SaveLabel = (
  measurement: MeasurementAnswers,
  row: AnswerRow,
  label: AnswerLabel,
) => Promise<void>;

/** Reads the answers of measurements, from the page or from its server. */
export interface AnswersSource {
  measurements(): Promise<readonly MeasurementAnswers[]>;
  /** @throws Error if the rows are left out or cannot be read. The message is for people. */
  rows(measurement: MeasurementAnswers, limit: number): Promise<ReadAnswers>;
  /** Saves a person's grades of an answer on the server; null if this page cannot. */
  readonly saveLabel: SaveLabel | null;
  /** Replaces the block's data after the page was updated. Rows of unchanged measurements stay in memory. */
  replace(data: AnswersData): void;
}

/** Rows per request to the server. */
const rowsPerRequest = 500;
/** Measurements whose rows stay in memory. */
const keptMeasurements = 32;

export function answersSource(initial: AnswersData): AnswersSource {
  const cache = new Map<string, Promise<ReadAnswers>>();
  let data = initial;
  let list: Promise<readonly MeasurementAnswers[]> | null = null;
  return {
    measurements() {
      if (data.address === null || data.measurements.length > 0) return Promise.resolve(data.measurements);
      return (list ??= request(data.address).then(({ measurements }) => measurements));
    },
    rows(measurement, limit) {
      const { phase, id, step, total } = measurement;
      const key = JSON.stringify([phase, id, step, total, limit]);
      const answers = cache.get(key) ?? readRows(data, measurement, limit);
      cache.delete(key);
      cache.set(key, answers);
      // Rows that are damaged, or cannot be read now, are requested again.
      answers.then(({ verified }) => verified).catch(() => cache.delete(key));
      if (cache.size > keptMeasurements) cache.delete(cache.keys().next().value!);
      return answers;
    },
    saveLabel:
      initial.labelToken === undefined
        ? null
        : async ({ phase, id, step }, row, label) => {
            const query = { phase, id, step: String(step), count: "1", verify: "later" };
            await requestOne(data.address!, query, {
              method: "POST",
              headers: { "Content-Type": "application/json", "X-Label-Token": data.labelToken! },
              body: JSON.stringify({ question_id: row.item, sample: row.sample, ...label }),
            });
            // The row stays in memory.
            Object.assign(row, { label });
          },
    replace(next) {
      data = next;
      list = null;
    },
  };
}

async function readRows(
  { address, command }: AnswersData,
  { phase, id, step, total, rows, packed, problem }: MeasurementAnswers,
  limit: number,
): Promise<ReadAnswers> {
  if (problem !== null) throw new Error(`These answers cannot be shown: ${problem}`);
  const whole = { read: total, total, verified: null };
  if (rows !== null) return { rows, ...whole };
  if (packed !== undefined) return { rows: await unpack(packed), ...whole };
  if (address === null)
    throw new Error(`This file leaves out these answers. This command shows them: ${command ?? ""}`);
  const all: AnswerRow[] = [];
  let read = 0;
  let known = total;
  let isVerified = true;
  let labelsProblem: string | undefined;
  const query = { phase, id, step: String(step) };
  while (read < Math.min(known, limit)) {
    const range = { first: String(read), count: String(rowsPerRequest), verify: "later" };
    const part = await requestOne(address, { ...query, ...range });
    all.push(...(part.rows ?? []));
    ({ total: known, labelsProblem } = part);
    read = Math.min(read + rowsPerRequest, known);
    isVerified &&= part.isVerified ?? true;
  }
  const verified = isVerified ? null : requestOne(address, { ...query, count: "1" });
  return { rows: all, read, total: known, verified, labelsProblem };
}

/** @throws Error if the server has no such rows or cannot verify them. */
async function requestOne(
  address: string,
  of: Readonly<Record<string, string>>,
  more?: RequestInit,
): Promise<MeasurementAnswers> {
  const { measurements } = await request(`${address}&${new URLSearchParams(of).toString()}`, more);
  const measurement = measurements[0];
  if (measurement === undefined) throw new Error("The server has no such measurement. Load the page again.");
  if (measurement.problem !== null) throw new Error(`These answers cannot be shown: ${measurement.problem}`);
  return measurement;
}

async function request(address: string, more: RequestInit = {}): Promise<AnswersData> {
  const headers = { Accept: "application/json", ...more.headers };
  const reply = await fetch(address, { ...more, headers });
  if (!reply.ok) throw new Error(await refusal(reply, more.method === "POST"));
  return (await reply.json()) as AnswersData;
}

/** Returns the message for people. The reason that the server gives for a refused label is part of its JSON reply. */
async function refusal(reply: Response, isLabel: boolean): Promise<string> {
  const data: unknown = isLabel ? await reply.json().catch(() => null) : null;
  const isReason = typeof data === "object" && data !== null && "error" in data;
  if (isReason && typeof data.error === "string") return data.error;
  return `The server replied ${reply.status}. Load the page again.`;
}

async function unpack(packed: string): Promise<readonly AnswerRow[]> {
  const bytes = Uint8Array.from(atob(packed), (character) => character.charCodeAt(0));
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"));
  return (await new Response(stream).json()) as readonly AnswerRow[];
}
