import { isIP } from 'node:net';

/** Says whether the text is an IP address or a CIDR range: `10.0.0.2`, `10.0.0.0/8`, `fd00::/8`. */
export function isAddressRange(text: string): boolean {
  const [address = '', bits, ...rest] = text.split('/');
  const version = isIP(address);
  if (version === 0 || rest.length > 0 || address.includes('%')) return false;
  return bits === undefined || (/^\d{1,3}$/.test(bits) && Number(bits) <= (version === 6 ? 128 : 32));
}

/** Says whether the text is a valid `Host` header: `parley.home`, `parley.home:8443`, `[fd00::1]`. */
export function isHost(text: string): boolean {
  return /^(?:\[[\da-f:.]+\]|[a-z\d](?:[a-z\d._-]*[a-z\d])?)(?::[1-9]\d{0,4})?$/i.test(text);
}
