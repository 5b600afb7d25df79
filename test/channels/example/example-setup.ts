import type { Capabilities } from '#contracts/capabilities.ts';
import type { ChannelAdapter, ChannelDeps } from '#contracts/channel.ts';
import { threadId } from '#contracts/ids.ts';
import type { RouteHost } from '#contracts/route-host.ts';
import { ada, ExampleServer, type StoredMessage, theBot, token } from '../../platforms/example/server.ts';
import { aServer, send } from '../../server/a-server.ts';
import { silentLog } from '../../support/silent-log.ts';
import type { ChannelHarness } from '../contract/harness.ts';
import { hastyClock } from '../hasty-clock.ts';
import { ExampleAdapter } from './adapter.ts';
import { exampleCapabilities } from './capabilities.ts';
import { type ExampleConfig, exampleConfigSchema } from './config.ts';
import { exampleChannel, routeOf } from './ids.ts';

type Way = ExampleConfig['receive'];
const dm = { id: 'dm-7', kind: 'dm' } as const;
const group = { id: 'group-9', kind: 'group' } as const;

/** What a broken variant changes around the adapter. */
export type Breakage = {
  /** Wraps the sound adapter, between it and the test. */
  adapter?(sound: ChannelAdapter): ChannelAdapter;
  /** Wraps the routes, between the adapter and the HTTP server. */
  routes?(host: RouteHost): RouteHost;
  readonly capabilities?: Partial<Capabilities>;
};

/** The example network with all its people and faults, receiving in one of the three ways. */
export async function anExampleNetwork(receive: Way, breakage: Breakage = {}): Promise<ChannelHarness> {
  const server = new ExampleServer();
  await server.listen();
  const hooks = receive === 'hook' ? await hookHost(server) : undefined;
  const route = routeOf(theBot.id, dm.id);
  let latest: StoredMessage | undefined;
  const theLatest = () => {
    if (latest === undefined) throw new Error('test error: nobody has said anything');
    return latest;
  };
  const sound: ChannelAdapter[] = [];
  const newAdapter = (credentials = token): ChannelAdapter => {
    const routes = hooks === undefined ? {} : { routes: breakage.routes?.(hooks.routes) ?? hooks.routes };
    const deps: ChannelDeps = {
      log: silentLog,
      clock: hastyClock,
      fetch,
      dataDir: '/nonexistent',
      ...routes,
    };
    const config = exampleConfigSchema.parse({ url: server.url, token: credentials, receive });
    const adapter = new ExampleAdapter(config, deps);
    sound.push(adapter);
    return breakage.adapter?.(adapter) ?? adapter;
  };
  return {
    capabilities: { ...exampleCapabilities, ...breakage.capabilities },
    account: theBot.id,
    route,
    newAdapter: () => newAdapter(),
    strangerAdapter: () => newAdapter('another-token'),
    personSays: async (text) => {
      latest = server.says(ada, { room: dm, text });
    },
    personSaysInThread: async (text) => {
      server.says(ada, { room: group, text, thread: 'plans' });
      return { ...routeOf(theBot.id, group.id), thread: threadId('plans') };
    },
    personForwards: async (text) => void server.says(ada, { room: dm, text, forwardOf: 'Bob' }),
    personEdits: async (text) => server.edits(theLatest(), text),
    personDeletes: async () => server.deletes(theLatest()),
    personReacts: async (emoji, change) => server.reacts(theLatest(), emoji, change === 'taken-back'),
    botEchoes: async (text) => void server.says(theBot, { room: group, text }),
    redeliver: async () => server.log.redeliver(),
    sendsMalformed: async () => server.log.add({ kind: 'message', id: 'seven' }),
    standing: async () =>
      server.messages
        .filter(({ author, room, isDeleted }) => author === theBot && room.id === dm.id && !isDeleted)
        .map(({ id, text, spans, quotes, file, fileName = '' }) => ({
          ...{ messageId: String(id), text, spans, quotes },
          ...(file && { file: { name: fileName, text: Buffer.from(file, 'base64').toString() } }),
        })),
    botReactions: () => {
      const reaction = server.messages.findLast(({ author }) => author !== theBot)?.botReaction;
      return reaction === undefined ? [] : [reaction];
    },
    close: async () => {
      // A broken adapter may not have stopped the sound one inside it.
      for (const adapter of sound) await adapter.stop();
      await server.close();
      await hooks?.close();
    },
    faults: faultsOf(server),
    ...handsOf(receive, server),
    ...(hooks && { webhook: { deliver: hooks.deliver } }),
  };
}

/** Returns the controls that each way of receiving lets the platform offer. */
function handsOf(receive: Way, server: ExampleServer): Partial<ChannelHarness> {
  const receivingAway = async () => {
    await server.goAway();
    return () => server.listen();
  };
  const losesEvents = async () => server.log.forget();
  switch (receive) {
    case 'pull':
      return { unacknowledged: () => server.log.pending(), receivingAway, losesEvents };
    case 'push':
      return {
        receivingAway,
        losesEvents,
        history: {
          hold: () => server.holdHistory(),
          refuse: () => {
            server.isHistoryRefused = true;
          },
          interrupt: async (meanwhile) => {
            await server.goAway();
            await meanwhile();
            await server.listen();
          },
        },
      };
    case 'hook':
      return { unacknowledged: () => server.log.pending() };
    default:
      return receive satisfies never;
  }
}

function faultsOf(server: ExampleServer): NonNullable<ChannelHarness['faults']> {
  const refuse = (status: number, body: object) => server.faultNext({ kind: 'refuse', status, body });
  return {
    rateLimited: (afterMs) => refuse(429, { code: 'slow-down', afterMs }),
    unreachable: () => refuse(403, { code: 'blocked' }),
    unreadableMarkup: () => refuse(400, { code: 'markup' }),
    answerLost: () => server.faultNext({ kind: 'drop-answer' }),
    answerHangs: () =>
      new Promise((taken) => {
        server.faultNext({ kind: 'hang', taken });
      }),
    away: async () => {
      await server.goAway();
      return () => server.listen();
    },
  };
}

type HookHost = {
  readonly routes: RouteHost;
  deliver(text: string, secret?: 'wrong' | 'missing'): Promise<number>;
  close(): Promise<void>;
};

/** Starts the real HTTP server for the webhook, and makes the network call it until it reads 200. */
async function hookHost(network: ExampleServer): Promise<HookHost> {
  const { server, port } = await aServer();
  const post = async (body: string, secret: string | undefined) => {
    const headers: Record<string, string> = { host: `127.0.0.1:${port}`, 'content-type': 'application/json' };
    if (secret !== undefined) headers['x-hook-secret'] = secret;
    const path = `/channels/${exampleChannel}/hook`;
    return (await send({ port, path, method: 'POST', headers, body })).status;
  };
  const { hookSecret } = exampleConfigSchema.shape;
  const right = hookSecret.parse(undefined);
  network.log.callHook((event) => post(event, right));
  let calls = 0;
  return {
    routes: server.routesFor(exampleChannel),
    deliver: (text, secret) => {
      calls += 1;
      const event = {
        kind: 'message',
        id: 1_000_000 + calls,
        room: dm.id,
        roomKind: 'dm',
        author: ada,
        text,
        at: calls,
      };
      const shown = secret === undefined ? right : secret === 'wrong' ? right.replace('e', 'f') : undefined;
      return post(JSON.stringify(event), shown);
    },
    close: () => server.close(),
  };
}
