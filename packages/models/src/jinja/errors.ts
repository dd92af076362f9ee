/** An error of a template: its syntax, what it computes, or `raise_exception`. */
export class TemplateError extends Error {
  override readonly name: string = "TemplateError";
}

/** A construct that jinja2 may accept and this interpreter does not. */
export class UnsupportedError extends TemplateError {
  override readonly name = "UnsupportedError";
}

export function fail(message: string): never {
  throw new TemplateError(message);
}

export function unsupported(what: string): never {
  throw new UnsupportedError(
    `the template uses ${what}, which is not supported. Write the template without it.`,
  );
}
