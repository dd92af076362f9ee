/** Environment variable with the token of gateways and services. The token is read from nowhere else. */
export const tokenEnv = "OPENCLAW_GATEWAY_TOKEN";
