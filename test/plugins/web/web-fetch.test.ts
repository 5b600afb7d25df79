import { once } from 'node:events';
import type { ServerResponse } from 'node:http';
import { setTimeout } from 'node:timers/promises';
import { brotliCompressSync, gzipSync } from 'node:zlib';
import { afterEach, describe, expect, it } from 'vitest';
import { isLong } from '../../support/long-run.ts';
import { aPdf, aSwellingPdf } from './a-pdf.ts';
import { type AWeb, aWeb, listen, publicAddress, type Routes } from './a-web.ts';

const open: AWeb[] = [];

afterEach(async () => {
  for (const web of open.splice(0)) await web.close();
});

async function serve(routes: Routes, options?: Parameters<typeof aWeb>[1]): Promise<AWeb> {
  const web = await aWeb(routes, options);
  open.push(web);
  return web;
}

/** Serves one page and returns what the model reads of it. */
async function read(content: string | Buffer, type?: string): Promise<string | undefined> {
  const web = await serve({ '/': answer(content, type === undefined ? {} : { 'content-type': type }) });
  const { untrusted } = await web.call('web_fetch', { url: `${web.origin}/` });
  return untrusted?.text;
}

function answer(content: string | Buffer, headers: Record<string, string>) {
  return (_req: unknown, res: ServerResponse) => void res.writeHead(200, headers).end(content);
}

const words = 'Tides follow the moon, and the moon follows its own path around the earth. '.repeat(12);
const article = `<!doctype html><html><head><title>On tides</title></head><body>
  <nav><a href="/a">Home</a> <a href="/b">About</a></nav>
  <article><h1>On tides</h1><p>${words}</p><p>See <a href="/moon">the moon</a>. ${words}</p>
  <table><tr><th>Port</th><th>m</th></tr><tr><td>Brest</td><td>7</td></tr></table></article>
  <script>alert(1)</script></body></html>`;

/** A page of cards and one paragraph, which Readability takes for the article, with something else at its end. */
function aLandingPage(end: string): string {
  const card = (n: number) =>
    `<div class="card"><h2>Part ${n}</h2><span>${'Short. '.repeat(20)}</span></div>`;
  const cards = Array.from({ length: 60 }, (_, n) => card(n)).join('');
  return `<html><body><main><p>${words}</p></main><div class="sidebar-cards">${cards}</div>${end}</body></html>`;
}

describe('web_fetch', () => {
  it('reads an article as Markdown, marked as the words of strangers', async () => {
    const web = await serve({ '/': article });
    const { text, untrusted } = await web.call('web_fetch', { url: web.origin });
    expect(text).toBe('');
    expect(untrusted?.about).toBe(`page ${new URL(web.origin).host}`);
    expect(untrusted?.text).toContain('# On tides\n');
    expect(untrusted?.text).toContain(`[the moon](${web.origin}/moon)`);
    expect(untrusted?.text).toContain('| Port | m |\n| --- | --- |\n| Brest | 7 |');
    expect(untrusted?.text).not.toMatch(/alert|<p>|About/);
  });

  it('reads plain text, JSON and Markdown as they are', async () => {
    expect(await read('# a\n\n<b>b</b>', 'text/markdown')).toBe('# a\n\n<b>b</b>');
    expect(await read('{"a":[1]}', 'application/json')).toBe('{"a":[1]}');
    expect(await read('just\ttext', 'text/plain')).toBe('just\ttext');
  });

  it('reads a PDF page by page', async () => {
    expect(await read(aPdf(['High water at noon', 'Low water at six']), 'application/pdf')).toBe(
      '## Page 1\n\nHigh water at noon\n\n## Page 2\n\nLow water at six',
    );
  });

  it('says that a damaged PDF cannot be read', async () => {
    await expect(read('%PDF-1.7\nnothing', 'application/pdf')).rejects.toThrow('The PDF is damaged');
  });

  it.runIf(isLong)('gives up a PDF that needs too much memory', { timeout: 120_000 }, async () => {
    const pdf = await aSwellingPdf(1500);
    const before = process.memoryUsage.rss();
    await expect(read(pdf, 'application/pdf')).rejects.toThrow('too much memory');
    expect(process.memoryUsage.rss() - before).toBeLessThan(1024 * 1024 * 1024);
  });

  it('decodes by the header, by the page itself, or by the byte order mark', async () => {
    const gbk = Buffer.from([0xc4, 0xe3, 0xba, 0xc3]);
    const page = (charset: string, bytes: Buffer) =>
      Buffer.concat([
        Buffer.from(`<html><head>${charset}</head><body><p>`),
        bytes,
        Buffer.from('</p></body></html>'),
      ]);
    expect(await read(gbk, 'text/plain; charset=gbk')).toBe('你好');
    expect(await read(page('<meta charset="gb2312">', gbk), 'text/html')).toBe('你好');
    const sjis = Buffer.from([0x92, 0xaa]);
    const meta = '<meta http-equiv="Content-Type" content="text/html; charset=Shift_JIS">';
    expect(await read(page(meta, sjis), 'text/html')).toBe('潮');
    expect(await read(Buffer.from('\ufefftide ü', 'utf16le'), 'text/plain')).toBe('tide ü');
    expect(await read(Buffer.from('Flut ü'), 'text/plain; charset=nonsense')).toBe('Flut ü');
  });

  it('takes the whole page where the article is only a fragment of it', async () => {
    // A landing page of which Readability takes one section: pinchy 601, openclaw 82685.
    const text = await read(aLandingPage(''), 'text/html');
    expect(text).toContain('Part 1\n');
    expect(text).toContain('Part 59');
  });

  it('leaves out what a reader of the page would not see', async () => {
    const hidden =
      '<p hidden>one</p><p style="color:red; display:none">two</p><p aria-hidden="true">three</p>';
    const text = await read(aLandingPage(hidden), 'text/html');
    expect(text).toContain('Part 59');
    expect(text).not.toMatch(/^(?:one|two|three)$/m);
  });

  it('says that a page shows nothing without its scripts', async () => {
    await expect(read('<html><body><div id="root"></div><script>x</script></body></html>')).rejects.toThrow(
      'no text without its scripts',
    );
  });

  it('shows a long page in pieces that join without a gap', async () => {
    const long = Array.from({ length: 6000 }, (_, n) => `Zeile ${n} über 潮`).join('\n');
    const web = await serve({ '/': answer(long, { 'content-type': 'text/plain; charset=utf-8' }) });
    let joined = '';
    for (let next: string | undefined = '0'; next !== undefined; ) {
      const { text, untrusted } = await web.call('web_fetch', { url: web.origin, offset: Number(next) });
      expect(Buffer.byteLength(untrusted?.text ?? '')).toBeLessThanOrEqual(28_000);
      joined += untrusted?.text;
      next = /offset (\d+)\)$/.exec(text)?.[1];
    }
    expect(joined).toBe(long);
  });

  it.each([
    ['image/png', 'which has no text'],
    ['video/mp4', 'which has no text'],
  ])('does not download %s', async (type, sentence) => {
    const web = await serve({
      '/': (_req, res) => void res.writeHead(200, { 'content-type': type }).write('x'),
    });
    await expect(web.call('web_fetch', { url: web.origin })).rejects.toThrow(sentence);
  });

  it('refuses files that are neither text nor PDF', async () => {
    await expect(read(Buffer.from([0x50, 0x4b, 3, 4, 0, 0]), 'application/zip')).rejects.toThrow(
      'another kind',
    );
  });

  it.each([
    ['ftp://page.example/', 'reads http and https'],
    ['file:///etc/passwd', 'reads http and https'],
    ['javascript:1', 'reads http and https'],
    ['page.example', "isn't a URL"],
    ['http://a:b@page.example/', 'no user name or password'],
    ['http://page.example:22/', 'connects to ports'],
  ])('refuses %s', async (url, sentence) => {
    const web = await serve({});
    await expect(web.call('web_fetch', { url })).rejects.toThrow(sentence);
  });

  it('follows five redirects without cookies, and not a sixth', async () => {
    const hop = (to: string) => (_req: unknown, res: ServerResponse) =>
      void res.writeHead(302, { location: to, 'set-cookie': 'a=b' }).end('body');
    const web = await serve({
      ...Object.fromEntries([0, 1, 2, 3, 4, 5].map((n) => [`/${n}`, hop(`/${n + 1}`)])),
      '/6': 'end',
    });
    expect((await web.call('web_fetch', { url: `${web.origin}/1` })).untrusted?.text).toBe('end');
    await expect(web.call('web_fetch', { url: `${web.origin}/0` })).rejects.toThrow('more than 5 times');
    const names = new Set(web.requests.flatMap(({ headers }) => Object.keys(headers)));
    expect([...names].sort()).toEqual(['accept', 'accept-encoding', 'connection', 'host', 'user-agent']);
  });

  it('refuses credentials and other schemes that a redirect brings', async () => {
    const to = (location: string) => (_req: unknown, res: ServerResponse) =>
      void res.writeHead(301, { location }).end();
    const web = await serve({ '/a': to('http://u:p@page.example/'), '/b': to('file:///etc/passwd') });
    await expect(web.call('web_fetch', { url: `${web.origin}/a` })).rejects.toThrow('no user name');
    await expect(web.call('web_fetch', { url: `${web.origin}/b` })).rejects.toThrow('http and https');
  });

  it('reads compressed pages, and stops at 10 MB of what they unpack to', async () => {
    expect(await read('x')).toBe('x');
    const web = await serve({
      '/gzip': answer(gzipSync('zipped'), { 'content-encoding': 'gzip', 'content-type': 'text/plain' }),
      '/br': answer(brotliCompressSync('brotli'), { 'content-encoding': 'br', 'content-type': 'text/plain' }),
      '/bomb': answer(gzipSync(Buffer.alloc(64 * 1024 * 1024)), { 'content-encoding': 'gzip' }),
      '/twice': answer(gzipSync(gzipSync('a')), { 'content-encoding': 'gzip, gzip' }),
      '/endless': (_req, res) => {
        const more = () => !res.destroyed && res.write(Buffer.alloc(65_536), () => setImmediate(more));
        more();
      },
    });
    const text = async (path: string) =>
      (await web.call('web_fetch', { url: web.origin + path })).untrusted?.text;
    expect(await text('/gzip')).toBe('zipped');
    expect(await text('/br')).toBe('brotli');
    await expect(text('/bomb')).rejects.toThrow('larger than 10 MB');
    await expect(text('/endless')).rejects.toThrow('larger than 10 MB');
    await expect(text('/twice')).rejects.toThrow('compressed in a way');
  });

  it('gives up a server that answers too slowly', async () => {
    const web = await serve({ '/': () => undefined }, { network: { timeoutMs: 200 } });
    await expect(web.call('web_fetch', { url: web.origin })).rejects.toThrow('took too long');
  });

  it('gives up a page that takes too long to parse', async () => {
    const web = await serve(
      { '/': `<html><body>${'<b><i>x</i>'.repeat(400_000)}</body></html>` },
      { network: { timeoutMs: 1500 } },
    );
    await expect(web.call('web_fetch', { url: web.origin })).rejects.toThrow('took too long');
  });

  it('ends the connection when the run is stopped', async () => {
    const web = await serve({ '/': (_req, res) => void res.write('begun') });
    const stop = new AbortController();
    const call = web.call('web_fetch', { url: web.origin }, stop.signal);
    while (web.requests.length === 0) await setTimeout(5);
    stop.abort(new Error('stopped'));
    await expect(call).rejects.toThrow('stopped');
    const [{ socket }] = web.requests as [AWeb['requests'][number]];
    if (!socket.destroyed) await once(socket, 'close');
  });

  it('reads a server of this machine only if the owner allows it by host and port', async () => {
    const local = await listen('127.0.0.1', (_req, res) => res.end('local'));
    const allowed = await serve({}, { config: { allowHosts: [`127.0.0.1:${local.port}`] } });
    const url = `http://127.0.0.1:${local.port}/`;
    expect((await allowed.call('web_fetch', { url })).untrusted?.text).toBe('local');
    await expect(allowed.call('web_fetch', { url: `http://localhost:${local.port}/` })).rejects.toThrow();
    await expect(allowed.call('web_fetch', { url: `http://127.0.0.1:${allowed.port}/` })).rejects.toThrow(
      'plugins.web.allowHosts',
    );
    const strict = await serve({});
    await expect(strict.call('web_fetch', { url })).rejects.toThrow('connects to ports');
    await local.close();
  });

  it('connects directly, whatever proxy the environment names', async () => {
    const proxy = await listen(publicAddress, (_req, res) => res.end('proxy'));
    const names = ['HTTP_PROXY', 'http_proxy', 'ALL_PROXY'];
    for (const name of names) process.env[name] = `http://${publicAddress}:${proxy.port}`;
    try {
      expect(await read('direct', 'text/plain')).toBe('direct');
      expect(proxy.connections()).toBe(0);
    } finally {
      for (const name of names) delete process.env[name];
      await proxy.close();
    }
  });

  it('names the status of a page that is refused, and a server that is away', async () => {
    const web = await serve({ '/': (_req, res) => void res.writeHead(403).end('no') });
    await expect(web.call('web_fetch', { url: web.origin })).rejects.toThrow('answered with status 403');
    const gone = await listen(publicAddress, () => undefined);
    await gone.close();
    const away = await serve({}, { config: { ports: [gone.port] } });
    await expect(away.call('web_fetch', { url: `http://page.example:${gone.port}/` })).rejects.toThrow(
      "doesn't accept connections (ECONNREFUSED)",
    );
  });

  it('offers no tool when it is turned off', async () => {
    const web = await serve({}, { config: { enabled: false } });
    expect(web.tools()).toEqual([]);
  });
});
