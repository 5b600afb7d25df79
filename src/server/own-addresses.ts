import { isIP } from 'node:net';
import { type NetworkInterfaceInfo, networkInterfaces } from 'node:os';
import { isContainer } from '#channel-kit/own-commands.ts';
import { isWildcard, pageAddress } from './page-address.ts';

/**
 * The names, as URLs write them, under which other machines reach a server that listens on `host`: none for a loopback
 * address, each address of this machine for a wildcard.
 */
export function ownAddresses(host: string, interfaces = networkInterfaces): readonly string[] {
  if (!isWildcard(host)) return isLoopback(host) ? [] : [inUrl(host)];
  return Object.values(interfaces())
    .flatMap((addresses) => addresses ?? [])
    .filter(({ internal }) => !internal)
    .map(({ address }) => inUrl(address));
}

/**
 * Where a phone on the same network finds the page; undefined when the server listens for this machine alone, and in a
 * container, whose own address nobody outside can use.
 */
export function phoneAddress(host: string, port: number, machine = thisMachine): string | undefined {
  if (machine.isContainer() || isLoopback(host)) return undefined;
  if (!isWildcard(host)) return pageAddress(host, port);
  const found = Object.entries(machine.interfaces())
    .filter(([name]) => !virtual.test(name))
    .flatMap(([, addresses]) => addresses ?? [])
    .filter(isReachable)
    .map(({ address }) => address);
  // A home network's address before that of a tunnel.
  const address = found.find((one) => /^(?:192\.168|10|172\.(?:1[6-9]|2\d|3[01]))\./.test(one)) ?? found[0];
  return address === undefined ? undefined : pageAddress(address, port);
}

/** Bridges between containers and virtual machines of this machine: no phone is there. */
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
