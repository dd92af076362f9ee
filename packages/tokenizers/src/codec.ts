/** Converts strings to ids and back, without chat templates. */
export interface Codec {
  readonly vocabSize: number;
  encode(text: string, specialTokens: boolean): number[];
  decode(ids: readonly number[], specialTokens: boolean): string;
  tokenOf(id: number): string | undefined;
  idOf(token: string): number | undefined;
  readonly specialIds: ReadonlySet<number>;
  /** Whether tokens are spelled in GPT-2's byte alphabet. */
  readonly isByteLevel: boolean;
}
