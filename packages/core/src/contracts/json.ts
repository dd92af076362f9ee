export type Awaitable<T> = T | Promise<T>;

/** A value that survives `JSON.stringify` and `JSON.parse` unchanged. */
export type Json = null | boolean | number | string | readonly Json[] | { readonly [key: string]: Json };
