import { BlockList, isIP } from 'node:net';

export type ProxyCheck = (address: string) => boolean;

/**
 * Returns a check for proxies that are trusted to report a sender's address. `configured`: addresses and
 * CIDR ranges, already checked by `isAddressRange`.
 */
export function trustedProxies(configured: readonly string[]): ProxyCheck {
  const list = new BlockList();
  for (const range of configured) {
    const [address = '', bits] = range.split('/');
    const family = isIP(address) === 6 ? 'ipv6' : 'ipv4';
    if (bits === undefined) list.addAddress(address, family);
    else list.addSubnet(address, Number(bits), family);
  }
  return (address) => {
    const version = isIP(address);
    return version !== 0 && list.check(address, version === 6 ? 'ipv6' : 'ipv4');
  };
}
