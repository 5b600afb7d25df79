import { spawn } from 'node:child_process';
import { readdirSync, readFileSync, readlinkSync } from 'node:fs';
import { text } from 'node:stream/consumers';
import { childrenOf } from '../e2e/process-tree.ts';

/** Socket states in /proc/net that accept anybody's packets: listening TCP, and UDP that isn't connected to a peer. */
const tables = { tcp: '0A', tcp6: '0A', udp: '07', udp6: '07' } as const;

/** Returns the addresses at which a process and its children can be reached over a network, as `127.0.0.1:7411`. */
export function listenersOf(pid: number): readonly string[] {
  const own = new Set([pid, ...descendantsOf(pid)].flatMap(socketsOf));
  return Object.entries(tables).flatMap(([table, state]) =>
    readFileSync(`/proc/${pid}/net/${table}`, 'utf8')
      .split('\n')
      .slice(1)
      .map((line) => line.trim().split(/\s+/))
      .filter((fields) => fields[3] === state && own.has(`socket:[${fields[9]}]`))
      .map((fields) => readAddress(fields[1] ?? '')),
  );
}

function descendantsOf(pid: number): readonly number[] {
  return childrenOf(pid).flatMap((child) => [child, ...descendantsOf(child)]);
}

function socketsOf(pid: number): readonly string[] {
  const folder = `/proc/${pid}/fd`;
  return readdirSync(folder).flatMap((fd) => {
    try {
      return [readlinkSync(`${folder}/${fd}`)];
    } catch {
      // Closed since the folder was read.
      return [];
    }
  });
}

/** The kernel writes each word of an address in the machine's own order. */
function readAddress(written: string): string {
  const [address = '', port = ''] = written.split(':');
  const bytes = Buffer.from(address, 'hex').swap32();
  const shown = bytes.length === 4 ? bytes.join('.') : `[${bytes.toString('hex')}]`;
  return `${shown}:${Number.parseInt(port, 16)}`;
}

/** Tries every port of an address and prints those that answer. */
const scanner = `
  const { connect } = require('node:net');
  const [host] = process.argv.slice(1);
  const open = [];
  let [next, busy] = [1, 0];
  const step = () => {
    while (busy < 500 && next <= 65_535) {
      const [port, socket] = [next, connect({ host, port: next })];
      [next, busy] = [next + 1, busy + 1];
      socket.once('connect', () => { open.push(port); socket.destroy(); });
      // A refusal; nothing else may be taken for one.
      socket.once('error', (error) => { if (error.code !== 'ECONNREFUSED') throw error; });
      socket.once('close', () => { busy -= 1; step(); });
    }
    if (next > 65_535 && busy === 0) console.log(JSON.stringify(open));
  };
  step();
`;

export type TwoNamespaces = {
  /** The namespace to scan, for `ip netns exec`. */
  readonly inner: string;
  /** Returns the ports of the inner namespace that answer in the outer one, over IPv4 and over IPv6. */
  scan(): Promise<readonly (readonly number[])[]>;
  remove(): Promise<void>;
};

const addresses = ['10.203.7.1', 'fd7a:7411::1'] as const;

/** Two network namespaces joined by a pair of virtual interfaces; undefined where this machine doesn't allow any. */
export async function twoNamespaces(): Promise<TwoNamespaces | undefined> {
  const [inner, outer] = [`parley-in-${process.pid}`, `parley-out-${process.pid}`];
  const ip = (line: string) => run('ip', line.split(' '));
  const remove = async () => {
    // Deleting either end removes the pair.
    for (const name of [inner, outer]) await ip(`netns del ${name}`).catch(() => undefined);
  };
  try {
    for (const name of [inner, outer]) {
      await ip(`netns add ${name}`);
      await ip(`-n ${name} link set lo up`);
    }
    await ip(`link add name one netns ${inner} type veth peer name other netns ${outer}`);
    await ip(`-n ${inner} link set one up`);
    await ip(`-n ${outer} link set other up`);
    await ip(`-n ${inner} addr add ${addresses[0]}/30 dev one`);
    await ip(`-n ${inner} addr add ${addresses[1]}/64 dev one nodad`);
    await ip(`-n ${outer} addr add 10.203.7.2/30 dev other`);
    await ip(`-n ${outer} addr add fd7a:7411::2/64 dev other nodad`);
  } catch {
    // Not root, or `ip` isn't installed.
    await remove();
    return undefined;
  }
  const scanOne = async (address: string) =>
    JSON.parse(
      await run('ip', ['netns', 'exec', outer, process.execPath, '-e', scanner, address]),
    ) as readonly number[];
  return { inner, scan: () => Promise.all(addresses.map(scanOne)), remove };
}

async function run(program: string, args: readonly string[]): Promise<string> {
  const child = spawn(program, args, { stdio: ['ignore', 'pipe', 'pipe'] });
  const ended = new Promise<number | null>((resolve, reject) => {
    child.once('error', reject);
    child.once('close', resolve);
  });
  const [out, problem, code] = await Promise.all([text(child.stdout), text(child.stderr), ended]);
  if (code !== 0) throw new Error(`${program} ${args.join(' ')}: ${problem}`);
  return out;
}
