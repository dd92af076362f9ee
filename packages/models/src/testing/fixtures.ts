/** Where parity suites find the numbers of reference implementations; absent where nobody put them there. */
export const fixtures = process.env["PERIODIC_EVAL_FIXTURES"] ?? "../shared/fixtures";
