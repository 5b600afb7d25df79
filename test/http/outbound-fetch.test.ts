import { execFile, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { createServer, type RequestListener, type Server } from 'node:http';
import { type AddressInfo, createServer as createTcpServer } from 'node:net';
import { text } from 'node:stream/consumers';
import { promisify } from 'node:util';
import { Worker } from 'node:worker_threads';
import { afterEach, describe, expect, it, onTestFinished } from 'vitest';
import { neverLeft } from '#channel-kit/network-fault.ts';
import { nodeFlags } from '../../bin/node-settings.mjs';
import { outboundFetch } from '../../src/http/outbound-fetch.ts';

let server: Server | undefined;
afterEach(() => {
  server?.closeAllConnections();
  server?.close();
  server = undefined;
});

async function serving(listener: RequestListener): Promise<string> {
  server = createServer(listener);
  await new Promise<void>((resolve) => server?.listen(0, '127.0.0.1', resolve));
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
}

const echo: RequestListener = async (request, response) => {
  const said = await text(request);
  response.setHeader('content-type', 'application/json');
  response.setHeader('set-cookie', ['a=1', 'b=2']);
  response.statusCode = request.url === '/refused' ? 418 : 200;
  response.end(JSON.stringify({ method: request.method, type: request.headers['content-type'], said }));
};

const post = { method: 'POST', headers: { 'content-type': 'application/json' }, body: '{"text":"né 🙂"}' };

describe('outboundFetch', () => {
  it.each(['/', '/refused'])('answers as fetch does at %s', async (path) => {
    const url = `${await serving(echo)}${path}`;
    const [lean, plain] = await Promise.all([outboundFetch(url, post), fetch(url, post)]);
    expect([lean.ok, lean.status, lean.statusText]).toEqual([plain.ok, plain.status, plain.statusText]);
    expect(lean.headers.get('content-type')).toBe(plain.headers.get('content-type'));
    expect(lean.headers.getSetCookie()).toEqual(plain.headers.getSetCookie());
    expect(await lean.json()).toEqual(await plain.json());
  });

  it("makes calls without loading Node's own undici, unlike an import of node:http", async () => {
    const url = await serving(echo);
    const program = `
      import { outboundFetch } from ${JSON.stringify(new URL('../../src/http/outbound-fetch.ts', import.meta.url))};
      const answer = await outboundFetch('${url}', ${JSON.stringify(post)});
      const isLoaded = () => process.moduleLoadList.some((name) => name.includes('deps/undici'));
      const lean = isLoaded();
      await import('node:http');
      console.log(answer.status, (await answer.json()).said, lean, isLoaded());`;
    const run = await promisify(execFile)(process.execPath, ['--input-type=module', '--eval', program]);
    expect(run.stdout).toBe(`200 ${post.body} false true\n`);
  });

  it('passes the body on as it arrives', async () => {
    const rest = Promise.withResolvers<void>();
    const url = await serving(async (_request, response) => {
      response.write('one');
      await rest.promise;
      response.end('two');
    });
    const answer = await outboundFetch(url);
    const read: string[] = [];
    for await (const chunk of answer.body ?? []) {
      read.push(Buffer.from(chunk).toString());
      rest.resolve();
    }
    expect(read).toEqual(['one', 'two']);
  });

  it('reuses its connections', async () => {
    const url = await serving(echo);
    let connections = 0;
    server?.on('connection', () => {
      connections += 1;
    });
    for (let call = 0; call < 10; call++) await (await outboundFetch(url, post)).text();
    // A call that follows at once may find the first connection not yet free.
    expect(connections).toBeLessThanOrEqual(2);
  });

  it('aborts with its signal before and during the answer', async () => {
    const url = await serving((request, response) => {
      if (request.url === '/begun') response.write('one');
    });
    const early = new AbortController();
    const waiting = outboundFetch(`${url}/`, { signal: early.signal });
    early.abort();
    await expect(waiting).rejects.toThrow(expect.objectContaining({ name: 'AbortError' }));
    const late = new AbortController();
    const answer = await outboundFetch(`${url}/begun`, { signal: late.signal });
    late.abort();
    await expect(answer.text()).rejects.toThrow();
    await expect(outboundFetch(url, { signal: AbortSignal.abort() })).rejects.toThrow();
  });

  it('ends each call wherever the connection is cut, without affecting others', async () => {
    const cutting = new Worker(new URL('./cutting-server.ts', import.meta.url));
    onTestFinished(async () => void (await cutting.terminate()));
    const [port] = await once(cutting, 'message');
    const ends = { whole: 0, refused: 0, cut: 0 };
    const call = async () => {
      try {
        await (await outboundFetch(`http://127.0.0.1:${port}/`, post)).json();
        ends.whole += 1;
      } catch (error) {
        ends[neverLeft(error) ? 'refused' : 'cut'] += 1;
      }
    };
    // An error without a listener would fail the run, and a call that never ends would fail this test.
    for (let round = 0; round < 60; round++) await Promise.all(Array.from({ length: 20 }, call));
    expect(Math.min(...Object.values(ends))).toBeGreaterThan(0);
  });

  it('tells a connection that was never made from one that was cut', async () => {
    const url = await serving((_request, response) => response.destroy());
    const cut = await outboundFetch(url, post).catch((error: unknown) => error);
    expect(cut).toMatchObject({ name: 'TypeError', cause: { code: 'UND_ERR_SOCKET' } });
    server?.close();
    server?.closeAllConnections();
    const refused = await outboundFetch(url, post).catch((error: unknown) => error);
    expect(refused).toMatchObject({ cause: { code: 'ECONNREFUSED', syscall: 'connect' } });
  });

  it('fails if the connection is upgraded or closed without an answer', async () => {
    const upgrade = 'HTTP/1.1 101 Switching Protocols\r\nconnection: upgrade\r\nupgrade: x\r\n\r\n';
    const upgrading = createTcpServer((socket) => socket.once('data', () => socket.write(upgrade)));
    await new Promise<void>((resolve) => upgrading.listen(0, '127.0.0.1', resolve));
    const { port } = upgrading.address() as AddressInfo;
    const closed = await outboundFetch(`http://127.0.0.1:${port}/`, post).catch((error: unknown) => error);
    upgrading.close();
    expect(closed).toMatchObject({ name: 'TypeError', cause: { code: 'UND_ERR_SOCKET' } });
    expect(neverLeft(closed)).toBe(false);
  });

  it('knows that nothing was sent before the connection was encrypted', async () => {
    const cutting = createTcpServer((socket) => socket.once('data', () => socket.resetAndDestroy()));
    await new Promise<void>((resolve) => cutting.listen(0, '127.0.0.1', resolve));
    const { port } = cutting.address() as AddressInfo;
    const cut = await outboundFetch(`https://127.0.0.1:${port}/`, post).catch((error: unknown) => error);
    cutting.close();
    expect(cut).toMatchObject({ cause: { code: 'ECONNRESET', syscall: 'connect' } });
    expect(neverLeft(cut)).toBe(true);
  });

  it("tries each address of a name for two seconds, instead of Node's 250 ms", () => {
    const asked = "require('node:net').getDefaultAutoSelectFamilyAttemptTimeout()";
    const { stdout } = spawnSync(process.execPath, [...nodeFlags, '-p', asked], { encoding: 'utf8' });
    expect(stdout.trim()).toBe('2000');
  });

  it('uploads a stream', async () => {
    const url = await serving(echo);
    const body = new Blob(['by', 'tes']).stream();
    const uploaded = await outboundFetch(url, { method: 'POST', headers: { 'content-type': 'a/b' }, body });
    expect(await uploaded.json()).toEqual({ method: 'POST', type: 'a/b', said: 'bytes' });
  });

  it.each([301, 302, 303, 307, 308])(
    'sends nothing to another host after a %s and names that host',
    async (status) => {
      const asked: string[] = [];
      const other = createServer((request, response) => {
        asked.push(request.url ?? '');
        response.end('{}');
      });
      await new Promise<void>((resolve) => other.listen(0, '127.0.0.1', resolve));
      onTestFinished(() => void other.close());
      const elsewhere = `http://127.0.0.1:${(other.address() as AddressInfo).port}`;
      const url = await serving((_request, response) =>
        response.writeHead(status, { location: `${elsewhere}/secret-path` }).end(),
      );
      const upload = { method: 'POST', body: new Blob(['bytes']) };
      for (const init of [{}, post, upload]) {
        const error = await outboundFetch(`${url}/bot-token`, init).catch((given: unknown) => given);
        expect(error).toMatchObject({ code: 'ERR_REDIRECTED' });
        expect(String(error)).toContain(`the server at ${url} redirects to ${elsewhere}`);
        expect(String(error)).not.toMatch(/secret-path|bot-token/);
        expect(neverLeft(error)).toBe(true);
      }
      expect(asked).toEqual([]);
    },
  );

  it("follows a download's redirects within its host a few times, and never those of a send", async () => {
    const url = await serving((request, response) => {
      if (request.url === '/old') return void response.writeHead(302, { location: '/new' }).end();
      if (request.url === '/round') return void response.writeHead(302, { location: '/round' }).end();
      return void echo(request, response);
    });
    expect(await (await outboundFetch(`${url}/old`)).json()).toMatchObject({ method: 'GET' });
    await expect(outboundFetch(`${url}/round`)).rejects.toMatchObject({ code: 'ERR_REDIRECTED' });
    await expect(outboundFetch(`${url}/old`, post)).rejects.toMatchObject({ code: 'ERR_REDIRECTED' });
  });
});
