/** Where the page is for a browser on this machine: a wildcard is no place to go to, so its link names the loopback address. */
export function pageAddress(host: string, port: number): string {
  const name = isWildcard(host) ? '127.0.0.1' : host.includes(':') ? `[${host}]` : host;
  return `http://${name}:${port}`;
}

/** True for an address that stands for all of this machine's. */
export function isWildcard(host: string): boolean {
  return host === '0.0.0.0' || host === '::';
}
