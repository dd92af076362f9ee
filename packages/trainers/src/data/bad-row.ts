export type BadRowReason =
  | "not_json"
  | "unknown_form"
  | "broken_roles"
  | "empty"
  | "no_assistant_turn"
  | "template_failed"
  | "too_long";

/** A row that cannot be trained on as it is. */
export interface BadRow {
  /** `file.jsonl:12`, lines from 1; or `dataset[11]`, from 0. */
  readonly where: string;
  readonly reason: BadRowReason;
  /** What was found, in words. */
  readonly got: string;
}

export const isBadRow = <T extends object>(row: T | BadRow): row is BadRow => "reason" in row;

/** `rows.jsonl:3: too_long (300 tokens, 256 fit)` */
export const describeBadRow = ({ where, reason, got }: BadRow): string => `${where}: ${reason} (${got})`;
