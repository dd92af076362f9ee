/** A node of jinja's syntax tree; its classes are not exported. */
export interface TemplateNode {
  type: string;
  [field: string]: unknown;
}

export const isNode = (value: unknown): value is TemplateNode =>
  typeof value === "object" && value !== null && typeof (value as TemplateNode).type === "string";
