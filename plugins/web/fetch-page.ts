/**
 * Fetches what a model names, so the address decides, not the name: each hop resolves its name once, every address must
 * be public, and the connection goes to those addresses and nowhere else. Literal addresses are checked apart, because
 * Node never looks them up. Nothing but the URL is sent: no cookies, no credentials, no referrer.
 */
import type { LookupAddress } from 'node:dns';
import { lookup } from 'node:dns/promises';
import { isIP, type LookupFunction } from 'node:net';
import { Writable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { createBrotliDecompress, createGunzip, createInflate } from 'node:zlib';
import { Agent, type Dispatcher, request } from 'undici';
import type { WebConfig } from './config.ts';
import { isPublicAddress } from './public-address.ts';
import { networkProblem, webProblem } from './web-problem.ts';

/** Parts of the network that tests replace. */
export type Network = {
  readonly resolve?: (host: string) => Promise<readonly LookupAddress[]>;
  readonly isPublic?: (address: string) => boolean;
  readonly timeoutMs?: number;
};

export type FetchOptions = {
  readonly config: Pick<WebConfig, 'ports' | 'allowHosts'>;
  readonly network: Network;
  readonly signal: AbortSignal;
};

export type Page = {
  /** Where it was found, after redirects. */
  readonly url: URL;
  /** Empty if the server doesn't say. */
  readonly contentType: string;
  readonly bytes: Uint8Array<ArrayBuffer>;
};

const maxRedirects = 5;
/** Longest page, decompressed. */
const maxBytes = 10 * 1024 * 1024;

/** Throws ParleyError `tool_failed` with a sentence for the model. */
export async function fetchPage(address: string, options: FetchOptions): Promise<Page> {
  let url = parseUrl(address);
  for (let followed = 0; followed <= maxRedirects; followed += 1) {
    const answer = await fetchHop(url, options);
    if (!(answer instanceof URL)) return answer;
    url = answer;
  }
  throw webProblem(`The page redirects more than ${maxRedirects} times.`);
}

function parseUrl(address: string, base?: string): URL {
  if (!URL.canParse(address, base)) throw webProblem("That isn't a URL. Write it with https:// or http://.");
  const url = new URL(address, base);
  if (url.protocol !== 'https:' && url.protocol !== 'http:')
    throw webProblem(`web_fetch reads http and https, not ${url.protocol.slice(0, 20)}.`);
  if (url.username !== '' || url.password !== '')
    throw webProblem('web_fetch sends no user name or password; write the URL without them.');
  url.hash = '';
  return url;
}

/** Returns the page, or where it redirects. */
async function fetchHop(url: URL, options: FetchOptions): Promise<Page | URL> {
  const { signal } = options;
  const addresses = await checkedAddresses(url, options);
  const connect = { lookup: answerWith(addresses), timeout: 10_000 };
  const dispatcher = new Agent({ connect, allowH2: false });
  try {
    const answer = await request(url, { dispatcher, signal, headers });
    const { location } = answer.headers;
    if (answer.statusCode >= 300 && answer.statusCode < 400 && location !== undefined)
      return parseUrl(String(location), url.href);
    if (answer.statusCode !== 200) throw webProblem(`${url.host} answered with status ${answer.statusCode}.`);
    const contentType = String(answer.headers['content-type'] ?? '');
    checkType(contentType);
    return { url, contentType, bytes: await readBody(answer, signal) };
  } catch (error) {
    throw networkProblem(error, url.host, signal);
  } finally {
    // Also drops what the server still sends: a redirect's body, or the rest of a page that is too large.
    await dispatcher.destroy();
  }
}

const headers = {
  accept: 'text/markdown, text/html, application/xhtml+xml, text/plain;q=0.9, */*;q=0.5',
  'accept-encoding': 'gzip, deflate, br',
  'user-agent': 'Mozilla/5.0 (compatible; Parley)',
};

/** Resolves a hop's host. Throws unless the owner allowed the server, or its port and all of its addresses are public. */
async function checkedAddresses(
  url: URL,
  { config, network, signal }: FetchOptions,
): Promise<readonly LookupAddress[]> {
  const { resolve = resolveName, isPublic = isPublicAddress } = network;
  const host = url.hostname.replace(/^\[|\]$/g, '');
  const port = url.port === '' ? (url.protocol === 'https:' ? 443 : 80) : Number(url.port);
  const isAllowed = config.allowHosts.includes(`${url.hostname}:${port}`);
  if (!isAllowed && !config.ports.includes(port))
    throw webProblem(`web_fetch connects to ports ${config.ports.join(' and ')} only, not ${port}.`);
  const family = isIP(host);
  const addresses =
    family === 0 ? await whileActive(resolve(host), url, signal) : [{ address: host, family }];
  const isOpen = addresses.length > 0 && (isAllowed || addresses.every(({ address }) => isPublic(address)));
  if (isOpen) return addresses;
  throw webProblem(
    `web_fetch doesn't connect to ${url.host}, because it isn't on the public internet. The owner can allow it: ` +
      `plugins.web.allowHosts.`,
  );
}

async function resolveName(host: string): Promise<readonly LookupAddress[]> {
  return await lookup(host, { all: true });
}

/** A lookup can't be aborted, but waiting for it can. */
async function whileActive<T>(work: Promise<T>, url: URL, signal: AbortSignal): Promise<T> {
  const { promise, reject } = Promise.withResolvers<never>();
  const onAbort = () => reject(signal.reason);
  signal.addEventListener('abort', onAbort, { once: true });
  try {
    signal.throwIfAborted();
    return await Promise.race([work, promise]);
  } catch (error) {
    throw networkProblem(error, url.host, signal);
  } finally {
    signal.removeEventListener('abort', onAbort);
  }
}

/** Returns a lookup that only knows the checked addresses. */
function answerWith(addresses: readonly LookupAddress[]): LookupFunction {
  return (_host, { all }, done) => {
    const [first] = addresses;
    if (all) done(null, [...addresses]);
    else done(null, first?.address ?? '', first?.family);
  };
}

/** Throws for types that have no text, before their content is downloaded. */
function checkType(contentType: string): void {
  const [type = ''] = contentType.toLowerCase().split(';');
  if (/^\s*(?:image|audio|video|font|model)\//.test(type) && !type.includes('svg'))
    throw webProblem(
      `web_fetch reads web pages, PDF and text; this is ${type.trim().slice(0, 60)}, which has no text.`,
    );
}

const decoders: Readonly<Record<string, () => NodeJS.ReadWriteStream>> = {
  gzip: createGunzip,
  'x-gzip': createGunzip,
  deflate: createInflate,
  br: createBrotliDecompress,
};

async function readBody(
  { headers: { 'content-encoding': encoding = 'identity' }, body }: Dispatcher.ResponseData,
  signal: AbortSignal,
): Promise<Uint8Array<ArrayBuffer>> {
  const name = String(encoding).trim().toLowerCase();
  const decoder = Object.hasOwn(decoders, name) ? decoders[name]?.() : undefined;
  if (decoder === undefined && name !== 'identity' && name !== '')
    throw webProblem('The page is compressed in a way that web_fetch cannot read.');
  const chunks: Buffer[] = [];
  let bytes = 0;
  const collector = new Writable({
    write(chunk: Buffer, _encoding, done) {
      bytes += chunk.length;
      chunks.push(chunk);
      done(bytes <= maxBytes ? null : webProblem(`The page is larger than ${maxBytes / 1024 / 1024} MB.`));
    },
  });
  await pipeline(decoder === undefined ? [body, collector] : [body, decoder, collector], { signal });
  const all = new Uint8Array(bytes);
  let at = 0;
  for (const chunk of chunks) {
    all.set(chunk, at);
    at += chunk.length;
  }
  return all;
}
