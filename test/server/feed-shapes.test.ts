/**
 * Shapes of public reports about server-sent events, each tried against the feed: what its reporter had is named by the
 * repository and number of the report.
 */
import { once } from 'node:events';
import { connect } from 'node:net';
import { setTimeout as pause } from 'node:timers/promises';
import type { FastifyReply } from 'fastify';
import { describe, expect, it, onTestFinished, vi } from 'vitest';
import WebSocket from 'ws';
import { openEventStream } from '../../src/server/event-stream.ts';
import { FeedStage } from '../service/feed-stage.ts';
import { openOwnStore } from '../support/own-store.ts';
import { aServer } from './a-server.ts';

describe('the feed, as public reports would break it', () => {
  const store = openOwnStore();
  const start = async () => {
    const stage = new FeedStage(store());
    onTestFinished(() => stage.close());
    const feeds = { feeds: stage.feeds, mainLane: () => stage.laneKey };
    const { server, url, token, port, signIn } = await aServer({ store: store() as never, feeds });
    let isOpen = true;
    const close = async () => {
      if (isOpen) await server.close();
      isOpen = false;
    };
    onTestFinished(close);
    return { stage, url, port, token, close, signIn };
  };
  const open = async (
    { url, token }: { readonly url: string; readonly token: string },
    { query = '', headers = {}, method = 'GET' }: { query?: string; headers?: object; method?: string } = {},
  ) => {
    const over = new AbortController();
    onTestFinished(() => over.abort());
    const answer = await fetch(`${url}/api/feed${query}`, {
      ...{ method, signal: over.signal },
      headers: { authorization: `Bearer ${token}`, ...headers },
    });
    let text = '';
    const reading = (async () => {
      for await (const chunk of answer.body?.pipeThrough(new TextDecoderStream()) ?? []) text += chunk;
    })().catch(() => undefined);
    const shows = async (part: string | RegExp) => {
      while (!(typeof part === 'string' ? text.includes(part) : part.test(text))) await pause(10);
    };
    return { answer, text: () => text, shows, reading, leave: () => over.abort() };
  };

  it('tells proxies not to hold events back (nginx/nginx#1505)', async () => {
    const { answer } = await open(await start());
    expect(answer.headers.get('x-accel-buffering')).toBe('no');
    expect(answer.headers.get('content-type')).toBe('text/event-stream; charset=utf-8');
  });

  it('forbids proxies to compress it, whatever the client accepts (nestjs/nest#5762)', async () => {
    const { answer } = await open(await start(), { headers: { 'accept-encoding': 'gzip, br' } });
    expect(answer.headers.get('content-encoding')).toBeNull();
    expect(answer.headers.get('cache-control')).toBe('no-store, no-transform');
  });

  it('answers at once although nothing happens (NousResearch/hermes-agent#80757)', async () => {
    const feed = await open(await start());
    await feed.shows(/^retry: \d+\n\n/);
    await feed.shows('"type":"snapshot"');
  });

  it('says that it lives before a load balancer cuts it (stellar/go-stellar-sdk#376)', async () => {
    vi.useFakeTimers({ toFake: ['setInterval'] });
    onTestFinished(() => void vi.useRealTimers());
    const written: string[] = [];
    const raw = {
      writeHead: () => undefined,
      once: () => undefined,
      write: (text: string) => written.push(text),
    };
    // The stream uses nothing else of a reply.
    const reply = { raw, hijack: () => undefined, getHeaders: () => ({}) } as unknown as FastifyReply;
    openEventStream(reply, new AbortController().signal);
    vi.advanceTimersByTime(59_000);
    expect(written).toEqual([': \n\n', ': \n\n', ': \n\n']);
  });

  it('lets readers come back at different times (fanout/reconnecting-eventsource#1)', async () => {
    const at = await start();
    const feeds = await Promise.all(Array.from({ length: 8 }, () => open(at)));
    for (const feed of feeds) await feed.shows('retry: ');
    const delays = feeds.map(({ text }) => Number(/retry: (\d+)/.exec(text())?.[1]));
    expect(new Set(delays).size).toBeGreaterThan(3);
    expect(delays.filter((ms) => ms < 500 || ms > 2_500)).toEqual([]);
  });

  it('keeps an event one event, whatever its text contains (symfony/symfony#65020)', async () => {
    const at = await start();
    const feed = await open(at);
    await feed.shows('"type":"snapshot"');
    const text = 'a\n\nid: 7\ndata: {"type":"items"}\n\nb\rc\r\nd\u2028e\u0085f\u0000 \ud83d\udc1d \ud83d';
    at.stage.tell({ kind: 'title', sessionId: 's', title: text });
    await feed.shows('"kind":"title"');
    const events = feed
      .text()
      .split('\n\n')
      .filter((event) => event.includes('data: '));
    expect(events).toHaveLength(2);
    const data =
      events
        .at(-1)
        ?.split('\n')
        .find((line) => line.startsWith('data: ')) ?? '';
    expect(JSON.parse(data.slice(6)).event.title.toWellFormed()).toBe(text.toWellFormed());
  });

  it('keeps the id of the last place over events that have none (EventSource/eventsource#358)', async () => {
    const at = await start();
    const feed = await open(at);
    await feed.shows('"type":"snapshot"');
    at.stage.tell({ kind: 'cost', sessionId: 's', messageId: 'm', cost: 1 });
    await feed.shows('"kind":"cost"');
    expect(feed.text().match(/^id: /gm)).toHaveLength(1);
    expect(feed.text()).not.toMatch(/^id: *$/m);
  });

  it('answers an id that means nothing any more with a snapshot (whatwg/html#8297)', async () => {
    const at = await start();
    const first = await open(at);
    await first.shows(/id: (\S+)/);
    const id = /id: (\S+)/.exec(first.text())?.[1] ?? '';
    const [hash] = id.split(':');
    for (const old of [`${hash}.${'r'.repeat(12)}:9:9`, `${hash}:999999:999999`]) {
      const feed = await open(at, { headers: { 'last-event-id': old } });
      await feed.shows('"type":"snapshot"');
      expect(feed.answer.status).toBe(200);
      expect(/"after":(\d+)/.exec(feed.text())?.[1]).toBe('0');
    }
  });

  it('keeps a bounded amount for a reader who takes nothing (openclaw/openclaw#127368)', async () => {
    const at = await start();
    const socket = connect(at.port, '127.0.0.1');
    onTestFinished(() => void socket.destroy());
    await once(socket, 'connect');
    socket.write(
      `GET /api/feed HTTP/1.1\r\nhost: 127.0.0.1:${at.port}\r\nauthorization: Bearer ${at.token}\r\n\r\n`,
    );
    await once(socket, 'readable');
    socket.pause();
    const other = await open(at);
    await other.shows('"type":"snapshot"');
    const title = 'x'.repeat(50_000);
    for (let round = 0; round < 300; round += 1) {
      at.stage.tell({ kind: 'title', sessionId: `${round}`, title });
      await pause(1);
    }
    at.stage.tell({ kind: 'title', sessionId: 'last', title: 'last' });
    await other.shows(/"sessionId":"last"|"type":"snapshot".*"type":"snapshot"/s);
    // What the silent reader missed would be 15 MB; later it gets a snapshot instead.
    let text = '';
    socket.on('data', (chunk: Buffer) => {
      text += chunk.toString('latin1');
    });
    socket.resume();
    const snapshots = () => text.match(/"type":"snapshot"/g)?.length ?? 0;
    while (snapshots() < 2) await pause(20);
    expect(text.length).toBeLessThan(8 * 1024 * 1024);
  });

  it('ends when the server closes (fastify/sse#57)', async () => {
    const at = await start();
    const feed = await open(at);
    await feed.shows('"type":"snapshot"');
    await Promise.all([at.close(), feed.reading]);
  });

  it('has an EventSource come back while the database is away (Yaffle/EventSource#88)', async () => {
    const { server, url, token } = await aServer();
    onTestFinished(server.close);
    const headers = { authorization: `Bearer ${token}` };
    const program = await fetch(`${url}/api/feed`, { headers });
    expect([program.status, program.headers.get('retry-after')]).toEqual([503, '5']);
    const browser = await fetch(`${url}/api/feed`, { headers: { ...headers, accept: 'text/event-stream' } });
    expect([browser.status, browser.headers.get('content-type')]).toEqual([
      200,
      'text/event-stream; charset=utf-8',
    ]);
    expect(await browser.text()).toBe('retry: 5000\n\n');
  });

  it('serves a signed-in browser, and ends with its sign-in', async () => {
    const at = await start();
    const cookie = await at.signIn();
    const own = await fetch(`${at.url}/api/feed`, { headers: { cookie } });
    const reader = own.body?.getReader();
    expect(new TextDecoder().decode((await reader?.read())?.value)).toMatch(/^retry: /);
    await fetch(`${at.url}/api/sign-out`, {
      method: 'POST',
      headers: { cookie, origin: at.url, 'x-parley': '1', 'content-type': 'application/json' },
      body: '{}',
    });
    const rest = (async () => {
      while (!(await reader?.read())?.done);
    })();
    await rest.catch(() => undefined);
  });

  it('runs nothing for HEAD (kemalcr/kemal#798)', async () => {
    const { answer } = await open(await start(), { method: 'HEAD' });
    expect(answer.status).toBe(404);
  });

  it('serves more than six readers of a browser over WebSocket (freenet/freenet-core#5213)', async () => {
    const at = await start();
    const sockets = Array.from({ length: 8 }, () => {
      const socket = new WebSocket(`${at.url.replace('http', 'ws')}/api/feed`, {
        headers: { authorization: `Bearer ${at.token}` },
      });
      onTestFinished(() => socket.terminate());
      return socket;
    });
    const first = await Promise.all(sockets.map((socket) => once(socket, 'message')));
    expect(first.map(([data]) => JSON.parse(String(data)).type)).toEqual(new Array(8).fill('snapshot'));
  });
});
