import ipaddr from 'ipaddr.js';

/**
 * Says whether an address belongs to the public internet. An allow-list: IPv4 addresses without a special purpose, also
 * as IPv6, and IPv6 addresses from the only block that is handed out (2000::/3), which leaves out `::7f00:1`.
 */
export function isPublicAddress(address: string): boolean {
  if (!ipaddr.isValid(address)) return false;
  const parsed = ipaddr.process(address);
  if (parsed.range() !== 'unicast') return false;
  return parsed instanceof ipaddr.IPv4 || ((parsed.parts[0] ?? 0) & 0xe000) === 0x2000;
}
