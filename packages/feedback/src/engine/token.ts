/** The environment variable that holds the token of gateways and services; it is read from nowhere else. */
export const tokenEnv = "OPENCLAW_GATEWAY_TOKEN";
