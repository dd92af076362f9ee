/** A value, or a promise of it: a user's function may be synchronous or asynchronous. */
export type Awaitable<T> = T | Promise<T>;

/** A value that `JSON.stringify` and `JSON.parse` return unchanged. */
export type Json = null | boolean | number | string | readonly Json[] | { readonly [key: string]: Json };
