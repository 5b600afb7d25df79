/**
 * Decides which `Host` and `Origin` a request may carry. Only the case of a host's letters is ignored (RFC 9110):
 * another spelling of the same address (trailing dot, `127.1`, mapped IPv6) is another host, so a rebinding name never
 * matches.
 */
export type AllowedOrigins = {
  /** True when the request's Host header names this server. */
  hasHost(host: string | undefined): boolean;
  /** True when the requesting page was served by the same host that it sends the request to. */
  isSameOrigin(origin: string, host: string): boolean;
};

export type OriginSettings = {
  /** Where the server listens. */
  readonly port: number;
  /**
   * Further Host values as browsers send them: `parley.home:8443`; one without a port matches every port. A proxy may
   * serve these over https, all others are only valid over http.
   */
  readonly configured: readonly string[];
  /** Addresses at which others reach this machine, as URLs write them: an address, unlike a name, can't be rebound. */
  readonly own: () => readonly string[];
};

const loopbackNames = ['127.0.0.1', 'localhost', '[::1]'];
const httpPort = 80;

/** Compiles the settings. */
export function allowedOrigins({ port, configured, own }: OriginSettings): AllowedOrigins {
  const suffix = port === httpPort ? '' : `:${port}`;
  const loopback = new Set(loopbackNames.map((name) => `${name}${suffix}`));
  const further = new Set(configured.map((host) => host.toLowerCase()));
  const isFurther = (host: string) => further.has(host) || further.has(host.replace(/:[1-9]\d{0,4}$/, ''));
  const isOwn = (host: string) =>
    loopback.has(host) || own().some((name) => host === `${name.toLowerCase()}${suffix}`);
  return {
    hasHost: (host) => host !== undefined && (isFurther(host.toLowerCase()) || isOwn(host.toLowerCase())),
    isSameOrigin: (origin, host) => {
      // Browsers write an origin in lower case; anything else isn't from one.
      const name = host.toLowerCase();
      return (
        (origin === `http://${name}` && (isFurther(name) || isOwn(name))) ||
        (origin === `https://${name}` && isFurther(name))
      );
    },
  };
}

/** Returns the page's address for a browser on this machine: the loopback address if `host` is a wildcard. */
export function pageAddress(host: string, port: number): string {
  const name = isWildcard(host) ? '127.0.0.1' : host.includes(':') ? `[${host}]` : host;
  return `http://${name}:${port}`;
}

/** True for an address that means all addresses of this machine. */
export function isWildcard(host: string): boolean {
  return host === '0.0.0.0' || host === '::';
}
