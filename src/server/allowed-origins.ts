/**
 * Which `Host` and `Origin` a request may carry. The comparison is exact: another spelling of the
 * same address (trailing dot, `127.1`, mapped IPv6) is another host, so a rebinding name never fits.
 */
export type AllowedOrigins = {
  /** True when the request's Host header names this server. */
  hasHost(host: string | undefined): boolean;
  /** True when the page that asks was served under the very host it asks. */
  isSameOrigin(origin: string, host: string): boolean;
};

const loopbackNames = ['127.0.0.1', 'localhost', '[::1]'];
const httpPort = 80;

/**
 * `configured` holds further Host values as browsers send them, for example `parley.home:8443`;
 * those may be served over https by a proxy, the loopback names only over http.
 */
export function allowedOrigins(port: number, configured: readonly string[]): AllowedOrigins {
  const suffix = port === httpPort ? '' : `:${port}`;
  const loopback = new Set(loopbackNames.map((name) => `${name}${suffix}`));
  const further = new Set(configured);
  return {
    hasHost: (host) => host !== undefined && (loopback.has(host) || further.has(host)),
    isSameOrigin: (origin, host) =>
      (loopback.has(host) && origin === `http://${host}`) ||
      (further.has(host) && (origin === `http://${host}` || origin === `https://${host}`)),
  };
}
