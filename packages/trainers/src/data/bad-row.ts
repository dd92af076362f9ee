export type BadRowReason =
  | "not_json"
  /** Bytes that are no UTF-8, or half of a surrogate pair. */
  | "invalid_text"
  | "line_too_long"
  | "unknown_form"
  | "broken_roles"
  | "broken_content"
  | "empty"
  | "no_assistant_turn"
  | "template_failed"
  | "too_long"
  | "no_preference";

/** A row that cannot be trained on as it is. */
export interface BadRow {
  /** `file.jsonl:12` and `file.parquet:row 12`, from 1; or `dataset[11]`, from 0. */
  readonly where: string;
  readonly reason: BadRowReason;
  /** What was found, in words. */
  readonly got: string;
}

/** What is wrong with a row, or with a part of it. */
export type Fault = Omit<BadRow, "where">;

export const isBadRow = <T extends object>(row: T | BadRow): row is BadRow => "reason" in row;

/** `rows.jsonl:3: too_long (300 tokens, 256 fit)` */
export const describeBadRow = ({ where, reason, got }: BadRow): string => `${where}: ${reason} (${got})`;
