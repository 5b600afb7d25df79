import { isIP } from 'node:net';

/**
 * Returns the source that an attempt counts against: an IPv4 address, or the first 64 bits of an IPv6 address, since
 * one client usually has that entire network. `forwarded` is the address from a trusted proxy; if it isn't an address,
 * the attempt counts against the proxy, `peer`.
 */
export function sourceOf(forwarded: string, peer = ''): string {
  const address = isIP(forwarded) === 0 ? peer : forwarded;
  if (isIP(address) !== 6) return address;
  const groups = groupsOf(address);
  const isMapped = groups.slice(0, 5).every((group) => group === 0) && groups[5] === 0xffff;
  if (isMapped) return [6, 7].flatMap((at) => bytesOf(groups[at] ?? 0)).join('.');
  const network = groups.slice(0, 4).map((group) => group.toString(16));
  return `${network.join(':')}::/64`;
}

function bytesOf(group: number): readonly number[] {
  return [group >> 8, group & 0xff];
}

/** Returns the eight groups of a valid IPv6 address in any notation. */
function groupsOf(address: string): readonly number[] {
  // An address with a zone (`fe80::1%eth0`) is link-local; the zone says nothing about the sender.
  const plain = address.replace(/%.*$/s, '');
  // The URL parser normalises every notation: no dotted end, and zeros left out at most once.
  const [head = '', tail] = new URL(`http://[${plain}]`).hostname.slice(1, -1).split('::');
  const before = numbersIn(head);
  const after = numbersIn(tail ?? '');
  return [...before, ...new Array<number>(8 - before.length - after.length).fill(0), ...after];
}

function numbersIn(part: string): readonly number[] {
  return part === '' ? [] : part.split(':').map((group) => Number.parseInt(group, 16));
}
