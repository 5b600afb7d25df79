/** Returns the page's address for a browser on this machine: the loopback address if `host` is a wildcard. */
export function pageAddress(host: string, port: number): string {
  const name = isWildcard(host) ? '127.0.0.1' : host.includes(':') ? `[${host}]` : host;
  return `http://${name}:${port}`;
}

/** True for an address that means all addresses of this machine. */
export function isWildcard(host: string): boolean {
  return host === '0.0.0.0' || host === '::';
}
