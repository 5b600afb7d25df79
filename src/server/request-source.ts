import { isIP } from 'node:net';

/**
 * The source that an attempt counts against: an IPv4 address, or the first 64 bits of an IPv6 address, since
 * one client usually has all of those. `forwarded` is what a trusted proxy said; anything but an address counts
 * against the proxy, `peer`.
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

/** The eight groups of a valid IPv6 address, in whichever form it is written. */
function groupsOf(address: string): readonly number[] {
  // An address with a zone (`fe80::1%eth0`) is one of the link; the zone says nothing of the sender.
  const plain = address.replace(/%.*$/s, '');
  // The URL parser writes every form in one: without a dotted end, and with zeros left out at most once.
  const [head = '', tail] = new URL(`http://[${plain}]`).hostname.slice(1, -1).split('::');
  const before = numbersIn(head);
  const after = numbersIn(tail ?? '');
  return [...before, ...new Array<number>(8 - before.length - after.length).fill(0), ...after];
}

function numbersIn(part: string): readonly number[] {
  return part === '' ? [] : part.split(':').map((group) => Number.parseInt(group, 16));
}
