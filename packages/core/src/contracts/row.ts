/** One item or one result. Ids are unique within an evaluation and pair rows between two looks. */
export interface Row {
  readonly id: string;
}
