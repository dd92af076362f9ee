/** One item or one result of an evaluation. Ids are unique within it; rows of two measurements are paired by id. */
export interface Row {
  readonly id: string;
}
