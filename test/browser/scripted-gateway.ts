/** The real server and the real channel, with a script behind their ports. */

import { randomBytes } from 'node:crypto';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { systemClock } from '#channel-kit/system-clock.ts';
import type { InboundEnvelope } from '#contracts/envelope.ts';
import { type FormattedText, plainText } from '#contracts/formatted-text.ts';
import { accountId, channelId, conversationId, partKey } from '#contracts/ids.ts';
import type { OutboundContent } from '#contracts/outbound.ts';
import type { ShownAlert } from '#contracts/owner-alert.ts';
import type { ReplyRoute } from '#contracts/route.ts';
import { channel } from '../../channels/web/index.ts';
import type { ShownQuestion } from '../../src/contracts/owner-alert.ts';
import { createHttpServer } from '../../src/server/http-server.ts';
import type { UndeliveredPart } from '../../src/store/delivery/operator-actions.ts';
import type { StoredFile } from '../../src/store/reads/find-sent-file.ts';
import type { lazyStore } from '../support/lazy-store.ts';
import { patienceMs } from '../support/patience.ts';
import { scriptedStore } from '../support/scripted-store.ts';
import { createSessionDouble, type SessionDouble } from '../support/session-double.ts';
import { silentLog } from '../support/silent-log.ts';
import { someOperations } from '../support/some-operations.ts';

type Owner = {
  /** What the owner is notified of, and asked. */
  notices: readonly ShownAlert[];
  /** The messages the owner may ask about one by one; set by the test. */
  undelivered: readonly UndeliveredPart[];
  /** The files that the store's parts name, by the part's key; set by the test. */
  files: ReadonlyMap<string, StoredFile>;
  questions: readonly ShownQuestion[];
};

export type ScriptedGateway = Owner & {
  readonly url: string;
  /** The media folder. */
  readonly mediaDir: string;
  readonly session: SessionDouble;
  readonly route: ReplyRoute;
  /** Sends a part to the open pages. */
  deliver(content: OutboundContent, key?: string): Promise<void>;
  /** Shows the open pages an answer so far. */
  draft(text: string): Promise<void>;
  signInLink(): string;
  /** Closes every socket, calls `meanwhile`, and accepts sockets again. */
  restartSockets(meanwhile: () => void): Promise<void>;
  close(): Promise<void>;
};

/** `shared` keeps sign-ins and tokens; it is the caller's to close. */
export async function startScriptedGateway(shared: ReturnType<typeof lazyStore>): Promise<ScriptedGateway> {
  const session = createSessionDouble();
  const owner: Owner = { notices: [], questions: [], undelivered: [], files: new Map() };
  session.standing = { queueMode: 'steer' };
  const without = ({ key: part }: { readonly key: string }) => {
    owner.undelivered = owner.undelivered.filter(({ key }) => key !== part);
    return 'done';
  };
  const dataDir = await mkdtemp(join(tmpdir(), 'parley-page-'));
  const store = scriptedStore(shared, {
    readWhy: ({ id }: { readonly id: string }) => ({ kind: 'account', account: { id } }),
    findSentFile: ({ id }: { readonly id: string }) => owner.files.get(id),
    readUndelivered: () => owner.undelivered,
    retryPart: without,
    dropPart: without,
  });
  const server = createHttpServer({
    store,
    host: '127.0.0.1',
    port: 0,
    token: randomBytes(24).toString('base64url'),
    log: silentLog,
    readiness: async () => ({ missing: [] }),
    status: async () => ({
      version: '0.1.0',
      startedAt: 0,
      model: { name: 'demo-1', isDemo: true },
      channels: [
        { id: 'web', state: 'on', detail: 'this page' },
        { id: 'terminal', state: 'on', detail: 'this machine' },
        { id: 'telegram', state: 'off', detail: 'TELEGRAM_BOT_TOKEN is not set' },
      ],
    }),
    maxUploadBytes: 1_000,
    mediaDir: dataDir,
    operations: someOperations({
      render: {
        trace: (trace) => `message ${JSON.stringify(trace)}\n12:00  reached web: accepted`,
        record: () => '',
      },
      commands: () => [
        { name: 'new', description: 'Start a new conversation' },
        { name: 'stop', description: 'Stop my work' },
        { name: 'status', description: 'Show what I do' },
        { name: 'queue', description: 'Show what waits', argument: '[list]' },
      ],
      owner: {
        shown: async () => owner.notices,
        dismiss: async (id) => {
          owner.notices = owner.notices.filter((notice) => notice.id !== id);
          return true;
        },
        questions: async () => owner.questions,
        answer: async (id, verdict) => {
          if (!owner.questions.some((question) => question.id === id))
            return { result: 'late', text: 'Already refused by telegram:1.' };
          owner.questions = owner.questions.filter((question) => question.id !== id);
          return { result: verdict === 'approve' ? 'approved' : 'denied', text: 'done' };
        },
      },
    }),
  });
  const adapter = channel.create(
    {},
    {
      log: silentLog,
      clock: systemClock,
      fetch,
      dataDir,
      routes: server.routesFor(channelId('web')),
      timeline: session.timeline,
    },
  );
  await adapter.start(session.intake);
  const route: ReplyRoute = {
    channel: channelId('web'),
    account: accountId('web'),
    conversation: conversationId('main'),
  };
  const deliver = async (content: OutboundContent, key = 'part') => {
    await adapter.send({ key: partKey(key), route, content }, AbortSignal.timeout(patienceMs));
  };
  const draft = async (text: string) => {
    const { preview } = adapter;
    if (preview && 'draft' in preview)
      await preview.draft(route, 1, plainText(text), AbortSignal.timeout(patienceMs));
  };
  session.onStored = script(session, (key, text) => deliver({ kind: 'text', text }, key), draft);
  const { url } = await server.listen();
  return Object.assign(owner, {
    url,
    mediaDir: dataDir,
    session,
    route,
    deliver,
    draft,
    signInLink: () => server.signInLink(),
    restartSockets: async (meanwhile: () => void) => {
      await adapter.stop();
      meanwhile();
      await adapter.start(session.intake);
    },
    close: async () => {
      await adapter.stop();
      await server.close();
      await rm(dataDir, { recursive: true, force: true });
    },
  });
}

const greeting: FormattedText = {
  text: 'Hello there. Good to see you.',
  spans: [{ kind: 'bold', start: 13, length: 4 }],
};

/** "long task" works until it is steered or stopped; everything else is answered immediately. */
function script(
  session: SessionDouble,
  deliver: (key: string, text: FormattedText) => Promise<void>,
  draft: (text: string) => Promise<void>,
) {
  let active: { readonly runId: string; readonly messageId: string } | undefined;
  let runs = 0;
  const end = async (route: ReplyRoute, text: FormattedText | undefined, answered: readonly string[]) => {
    const runId = active?.runId ?? '';
    active = undefined;
    if (text !== undefined) {
      await deliver(`${runId}:1`, text);
      session.say(route, { ...text, messageId: `${runId}:1` });
    }
    for (const id of answered) session.setState(id, text === undefined ? 'cancelled' : 'answered');
    session.emit(route, { kind: 'run', runId, state: 'ended' });
  };
  return async ({ event, route }: InboundEnvelope) => {
    if (event.kind === 'stop' && active !== undefined) return end(route, undefined, [active.messageId]);
    if (event.kind !== 'message') return;
    if (active !== undefined) {
      const { messageId, runId } = active;
      session.emit(route, { kind: 'run', runId, state: 'steered' });
      return end(route, plainText(`I changed course: ${event.text}`), [messageId, event.messageId]);
    }
    runs += 1;
    active = { runId: `run-${runs}`, messageId: event.messageId };
    session.emit(route, { kind: 'run', runId: active.runId, state: 'started' });
    session.setState(event.messageId, 'taken');
    if (event.text !== 'long task') return end(route, greeting, [event.messageId]);
    session.emit(route, { kind: 'tool', runId: active.runId, name: 'web_search', state: 'started' });
    await draft('Working on it');
  };
}
