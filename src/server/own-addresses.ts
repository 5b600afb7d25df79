import { isIP } from 'node:net';
import { type NetworkInterfaceInfo, networkInterfaces } from 'node:os';
import { isContainer } from '#channel-kit/own-commands.ts';
import { isWildcard, pageAddress } from './page-address.ts';

/**
 * Returns the names, as URLs write them, under which other machines reach a server that listens on `host`: none for a
 * loopback address, each address of this machine for a wildcard.
 */
export function ownAddresses(host: string, interfaces = networkInterfaces): readonly string[] {
  if (!isWildcard(host)) return isLoopback(host) ? [] : [inUrl(host)];
  return Object.values(interfaces())
    .flatMap((addresses) => addresses ?? [])
    .filter(({ internal }) => !internal)
    .map(({ address }) => inUrl(address));
}

/**
 * Returns the page's address for a phone on the same network; undefined when the server only listens for this machine,
 * and in a container, whose address can't be reached from outside.
 */
export function phoneAddress(host: string, port: number, machine = thisMachine): string | undefined {
  if (machine.isContainer() || isLoopback(host)) return undefined;
  if (!isWildcard(host)) return pageAddress(host, port);
  const found = Object.entries(machine.interfaces())
    .filter(([name]) => !virtual.test(name))
    .flatMap(([, addresses]) => addresses ?? [])
    .filter(isReachable)
    .map(({ address }) => address);
  // Prefer a home network's address to a tunnel's.
  const address = found.find((one) => /^(?:192\.168|10|172\.(?:1[6-9]|2\d|3[01]))\./.test(one)) ?? found[0];
  return address === undefined ? undefined : pageAddress(address, port);
}

/** Bridges to this machine's containers and virtual machines, which no phone can reach. */
const virtual = /^(?:docker|br-|veth|virbr|vmnet|vboxnet)/;

function isReachable({ internal, family, address }: NetworkInterfaceInfo): boolean {
  return !internal && family === 'IPv4' && !address.startsWith('169.254.');
}

const thisMachine = {
  interfaces: networkInterfaces,
  isContainer,
};

function isLoopback(host: string): boolean {
  return host === 'localhost' || host === '::1' || /^127\./.test(host);
}

function inUrl(address: string): string {
  const plain = address.replace(/%.*$/s, '');
  return isIP(plain) === 6 ? `[${plain}]` : plain.toLowerCase();
}
