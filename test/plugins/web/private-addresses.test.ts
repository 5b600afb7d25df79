import type { LookupAddress } from 'node:dns';
import { isIP } from 'node:net';
import fc from 'fast-check';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { isPublicAddress } from '../../../plugins/web/public-address.ts';
import { isLong } from '../../support/long-run.ts';
import { type AWeb, aWeb, listen, publicAddress } from './a-web.ts';
import { privateForms } from './private-forms.ts';

const share = Math.floor(Date.now() / 86_400_000) % 10;
/** A tenth of the forms, another one each day; all of them in a long run. */
const forms = privateForms.filter((_, index) => isLong || index % 10 === share);
const randomCount = isLong ? 10_000 : 500;

/** What a name resolves to: one list per question, the last one for all further ones. */
const names = new Map<string, readonly (readonly LookupAddress[])[]>();
const asked = new Map<string, number>();

let web: AWeb;
let inside: readonly Awaited<ReturnType<typeof listen>>[];

beforeAll(async () => {
  const reply = (url: string | undefined, base: string) =>
    new URL(url ?? '', base).searchParams.get('to') ?? '';
  web = await aWeb(
    {
      '/to': (req, res) => res.writeHead(302, { location: inBytes(reply(req.url, 'http://x')) }).end(),
      '/page': 'a page',
    },
    { network: { resolve } },
  );
  inside = await Promise.all(
    ['127.0.0.1', '::1'].map((address) => listen(address, (_req, res) => res.end('SECRET'), web.port)),
  );
});

afterAll(async () => {
  await web.close();
  for (const server of inside) await server.close();
});

async function resolve(host: string): Promise<readonly LookupAddress[]> {
  const answers = names.get(host);
  if (answers === undefined)
    return host.includes('localhost') ? both : [{ address: publicAddress, family: 4 }];
  const count = asked.get(host) ?? 0;
  asked.set(host, count + 1);
  return answers[Math.min(count, answers.length - 1)] ?? [];
}

const both = [
  { address: '127.0.0.1', family: 4 },
  { address: '::1', family: 6 },
];

/** Writes a header as servers do that don't escape it: in UTF-8. */
function inBytes(header: string): string {
  return Buffer.from(header).toString('latin1');
}

/** Says why the fetch was refused; fails if it wasn't, or if something private was reached. */
async function refusal(url: string): Promise<string> {
  const outcome = await web.call('web_fetch', { url }).then(
    ({ untrusted }) => `read ${untrusted?.text}`,
    (error: unknown) => String(error),
  );
  expect(inside.map((server) => server.connections())).toEqual([0, 0]);
  return outcome;
}

const refused = /isn't on the public internet|isn't a URL|only, not/;

describe('web_fetch and private addresses', () => {
  it.each(forms)('connects to nothing private under the form %s', async (form) => {
    expect(await refusal(`http://${form}:${web.port}/`)).toMatch(refused);
  });

  it.each(forms)('follows no redirect to the form %s', async (form) => {
    const target = encodeURIComponent(`http://${form}:${web.port}/`);
    expect(await refusal(`${web.origin}/to?to=${target}`)).toMatch(refused);
  });

  it('connects to no private address that a name resolves to, alone or beside a public one', async () => {
    for (const [index, { address, family }] of forms.flatMap(literalOf).entries()) {
      const open = { address: publicAddress, family: 4 };
      names.set(`alone${index}.example`, [[{ address, family }]]);
      names.set(`first${index}.example`, [[{ address, family }, open]]);
      names.set(`second${index}.example`, [[open, { address, family }]]);
      for (const name of ['alone', 'first', 'second'])
        expect(await refusal(`http://${name}${index}.example:${web.port}/page`), address).toMatch(refused);
    }
  });

  it('connects to the checked address, whatever the name resolves to later', async () => {
    for (const [index, literal] of forms.flatMap(literalOf).entries()) {
      const host = `rebinding${index}.example`;
      names.set(host, [[{ address: publicAddress, family: 4 }], [literal]]);
      const url = `http://${host}:${web.port}`;
      expect(await refusal(`${url}/to?to=${encodeURIComponent(`${url}/page`)}`)).toMatch(refused);
      expect(asked.get(host)).toBe(2);
    }
  });

  it('resolves a name once for each hop', async () => {
    names.set('once.example', [[{ address: publicAddress, family: 4 }], both]);
    expect(await refusal(`http://once.example:${web.port}/page`)).toMatch(/^read a page/);
    expect(asked.get('once.example')).toBe(1);
  });

  it('connects to nothing private under random spellings of private addresses', async () => {
    const samples = fc.sample(spelling, { numRuns: randomCount, seed: share });
    for (const host of samples) expect(await refusal(`http://${host}:${web.port}/`), host).toMatch(refused);
  });

  it('takes addresses of the public internet for public', () => {
    const addresses = ['8.8.8.8', '1.1.1.1', '93.184.215.14', '2606:4700::1111', '2a00:1450:4001::1'];
    for (const address of [...addresses, '::ffff:8.8.8.8'])
      expect(isPublicAddress(address), address).toBe(true);
  });
});

/** The address that a form stands for, if it is one and not a name. */
function literalOf(form: string): readonly LookupAddress[] {
  if (!URL.canParse(`http://${form}/`)) return [];
  const address = new URL(`http://${form}/`).hostname.replace(/^\[|\]$/g, '');
  const family = isIP(address);
  return family === 0 ? [] : [{ address, family }];
}

const privateIpv4 = fc
  .oneof(
    fc.tuple(fc.constant(127), fc.nat(255), fc.nat(255), fc.nat(255)),
    fc.tuple(fc.constant(10), fc.nat(255), fc.nat(255), fc.nat(255)),
    fc.tuple(fc.constant(192), fc.constant(168), fc.nat(255), fc.nat(255)),
    fc.tuple(fc.constant(172), fc.integer({ min: 16, max: 31 }), fc.nat(255), fc.nat(255)),
    fc.tuple(fc.constant(169), fc.constant(254), fc.nat(255), fc.nat(255)),
    fc.tuple(fc.constant(100), fc.integer({ min: 64, max: 127 }), fc.nat(255), fc.nat(255)),
  )
  .filter((parts) => parts.join('.') !== publicAddress);

const radix = fc.constantFrom(
  (part: number) => String(part),
  (part: number) => `0x${part.toString(16)}`,
  (part: number) => `0${part.toString(8)}`,
  (part: number) => `0X${part.toString(16).padStart(8, '0')}`,
);

/** An address in 1 to 4 parts, each decimal, hexadecimal or octal, or inside one of IPv6. */
const spelling = fc
  .tuple(privateIpv4, fc.nat(3), fc.array(radix, { minLength: 4, maxLength: 4 }), fc.nat(4))
  .map(([parts, joined, write, wrap]) => {
    const last = parts.slice(3 - joined).reduce((sum, part) => sum * 256 + part, 0);
    const host = [...parts.slice(0, 3 - joined), last]
      .map((part, index) => (write[index] ?? String)(part))
      .join('.');
    const [a = 0, b = 0, c = 0, d = 0] = parts;
    const words = `${((a << 8) | b).toString(16)}:${((c << 8) | d).toString(16)}`;
    const prefixes = ['::ffff:', '::', '64:ff9b::', '::ffff:0:'];
    return wrap === 4 || wrap > 3 ? host : `[${prefixes[wrap]}${words}]`;
  });
